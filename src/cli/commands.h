#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace spillway::cli {

// Exit codes of the program itself; `spillway run` otherwise gives the one of the command.
inline constexpr int kExitOk = 0;
inline constexpr int kExitUnusable = 1;      // doctor: something needed is missing
inline constexpr int kExitBadArguments = 2;  // nothing was started, nothing was touched
inline constexpr int kExitInternal = 70;     // our bug (EX_SOFTWARE)

// A subcommand: it declares its arguments, and runs once they are parsed.
class Command {
 public:
  virtual ~Command() = default;
  virtual void declare(CLI::App& app) = 0;
  // `command` holds the words behind `--`. Returns the exit code.
  virtual int run(const std::vector<std::string>& command) = 0;
  // Whether `--` and a command may follow.
  [[nodiscard]] virtual bool takes_command() const = 0;
};

[[nodiscard]] std::unique_ptr<Command> make_run_command();
[[nodiscard]] std::unique_ptr<Command> make_doctor_command();
[[nodiscard]] std::unique_ptr<Command> make_recover_command();
[[nodiscard]] std::unique_ptr<Command> make_status_command();
[[nodiscard]] std::unique_ptr<Command> make_configuration_command();

// The whole program: what main() calls. Prints to stdout what was asked for, to stderr everything else.
int spillway_main(const std::vector<std::string>& arguments);

}  // namespace spillway::cli
