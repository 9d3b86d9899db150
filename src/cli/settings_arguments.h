#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "cli/mpi_abi.h"

namespace CLI {
class App;
}

namespace spillway::cli {

// The settings of one command line, and where each came from.
struct ResolvedSettings {
  base::Settings settings;
  base::Origins origins;      // by option name; absent: the default
  std::string file;           // the configuration file that was read; empty: none
  std::optional<MpiAbi> mpi;  // --mpi
};

// The options that come from the table of settings, plus --config and --mpi, as arguments of a subcommand.
class SettingsArguments {
 public:
  // The object must outlive the parsing by `app`.
  void add_to(CLI::App& app);

  // Command line over environment over file over default; directories become absolute.
  // Fails: bad_argument naming origin, value and what is accepted; as load_settings().
  [[nodiscard]] Result<ResolvedSettings> resolve() const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::vector<std::string> config_;
  std::vector<std::string> mpi_;
};

// What an option takes, as --help shows it: "none|memory", "SIZE", "DIR".
[[nodiscard]] std::string placeholder(const base::OptionSpec& option);

// Whether the directories of the settings exist and can be written to. It changes nothing in them.
// Fails: no_such_file, access_denied and the like, naming origin, value and what is accepted.
Status check_directories(const ResolvedSettings& resolved);

// The variables that hand these settings to the ranks: those that are not the default, and no configuration
// file, since other nodes and working directories may not have it.
[[nodiscard]] base::EnvironmentList variables_of(const ResolvedSettings& resolved);

}  // namespace spillway::cli
