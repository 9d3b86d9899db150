#include "cli/settings_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace spillway::cli {
namespace {

using base::OptionSpec;
using base::OptionType;

std::string help_of(const OptionSpec& option) {
  std::string help(option.help);
  std::erase(help, '`');
  if (option.type == OptionType::bytes) help += fmt::format(" Accepted: {}.", base::accepted_text(option));
  if (!option.default_text.empty()) help += fmt::format(" [{}]", option.default_text);
  return help;
}

void add_option(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& type,
                const std::string& help) {
  // Each use takes one value; how many uses are accepted is judged later, with a message of our own.
  app.add_option(name, values, help)->type_name(type)->allow_extra_args(false);
}

Status refuse_repeat(const std::string& origin, const std::vector<std::string>& values) {
  return {Code::bad_argument,
          fmt::format("{}: given {} times ({}); accepted: once", origin, values.size(), fmt::join(values, ", "))};
}

// A relative directory would mean another one in a rank with another working directory.
void make_absolute(std::string& directory) {
  if (directory.empty()) return;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(directory, error);
  if (!error) directory = absolute.lexically_normal().string();
}

Status check_directory(const ResolvedSettings& resolved, std::string_view option, const std::string& directory) {
  if (directory.empty()) return {};
  const auto origin = resolved.origins.find(option);
  const std::string named = origin == resolved.origins.end() ? fmt::format("{} (default)", option) : origin->second;
  const auto refuse = [&](int error) {
    return Status(base::code_of_errno(error),
                  fmt::format("{}: '{}' is not accepted: {}; accepted: the path of an existing directory that can be "
                              "written to",
                              named, directory, std::generic_category().message(error)));
  };
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return refuse(errno);
  if (!S_ISDIR(info.st_mode)) return refuse(ENOTDIR);
  if (::access(directory.c_str(), W_OK | X_OK) != 0) return refuse(errno);
  return {};
}

Result<std::optional<MpiAbi>> parse_mpi(const std::vector<std::string>& values) {
  std::optional<MpiAbi> abi;
  if (values.empty() || values.front() == "auto") return abi;
  if (values.size() > 1) return refuse_repeat("--mpi", values);
  abi = abi_of_name(values.front());
  if (!abi) {
    return Status(Code::bad_argument,
                  fmt::format("--mpi: '{}' is not accepted; accepted: auto, mpich, openmpi, abi", values.front()));
  }
  return abi;
}

}  // namespace

std::string placeholder(const OptionSpec& option) {
  switch (option.type) {
    case OptionType::choice:
      return std::string(option.choices);
    case OptionType::bytes:
      return "SIZE";
    case OptionType::boolean:
      return "on|off";
    case OptionType::directory:
      return "DIR";
    case OptionType::patterns:
      return "PATTERNS";
  }
  return "";
}

void SettingsArguments::add_to(CLI::App& app) {
  for (const OptionSpec& option : base::option_table()) {
    if ((option.scopes & base::kScopeCommandLine) == 0) continue;
    add_option(app, base::command_line_name(option), given_[std::string(option.name)], placeholder(option),
               help_of(option));
  }
  add_option(app, "--config", config_, "FILE",
             "Read settings from this file instead of the one that SPILLWAY_CONFIG names or ./spillway.toml.");
  add_option(app, "--mpi", mpi_, "auto|mpich|openmpi|abi",
             "The MPI of the program, where neither it nor the launcher shows it. [auto]");
}

Result<ResolvedSettings> SettingsArguments::resolve() const {
  ResolvedSettings resolved;
  const base::EnvironmentList environment = base::spillway_environment();
  if (config_.size() > 1) return refuse_repeat("--config", config_);
  resolved.file = config_.empty() ? base::configuration_file(environment) : config_.front();
  Result<base::Settings> settings = base::load_settings(environment, resolved.file, &resolved.origins);
  if (!settings.ok()) return settings.status();
  resolved.settings = std::move(settings.value());
  for (const auto& [name, values] : given_) {
    if (values.empty()) continue;
    const OptionSpec& option = *base::find_option(name);
    const std::string origin = base::command_line_name(option);
    if (values.size() > 1 && option.type != OptionType::patterns) return refuse_repeat(origin, values);
    const std::string value = fmt::format("{}", fmt::join(values, "\n"));
    if (Status status = base::set_option(resolved.settings, name, value, origin); !status.ok()) return status;
    resolved.origins[name] = origin;
  }
  Result<std::optional<MpiAbi>> mpi = parse_mpi(mpi_);
  if (!mpi.ok()) return mpi.status();
  resolved.mpi = mpi.value();
  make_absolute(resolved.settings.shm_dir);
  make_absolute(resolved.settings.trace_dir);
  return resolved;
}

Status check_directories(const ResolvedSettings& resolved) {
  const Status shm = check_directory(resolved, "shm_dir", resolved.settings.shm_dir);
  return shm.ok() ? check_directory(resolved, "trace", resolved.settings.trace_dir) : shm;
}

base::EnvironmentList variables_of(const ResolvedSettings& resolved) {
  base::EnvironmentList variables;
  for (const OptionSpec& option : base::option_table()) {
    if (resolved.origins.find(option.name) == resolved.origins.end()) continue;
    variables.emplace_back(base::environment_name(option), base::option_value_text(resolved.settings, option.name));
  }
  variables.emplace_back("SPILLWAY_CONFIG", "");
  return variables;
}

}  // namespace spillway::cli
