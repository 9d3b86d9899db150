#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/config.h"
#include "cli/commands.h"

namespace spillway::cli {
namespace {

class ConfigurationCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.description("Print the description of all settings, the text of docs/configuration.md.");
  }
  [[nodiscard]] bool takes_command() const override { return false; }
  int run(const std::vector<std::string>& /*command*/) override {
    fmt::print("{}", base::configuration_markdown());
    return kExitOk;
  }
};

}  // namespace

std::unique_ptr<Command> make_configuration_command() { return std::make_unique<ConfigurationCommand>(); }

}  // namespace spillway::cli
