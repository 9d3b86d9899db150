#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/launcher.h"

namespace spillway::cli {

// A piece of the command: the rest of words[at] from its character `from`.
struct WordTail {
  std::size_t at = 0;
  std::size_t from = 0;
};

// A variable that the user sets through the launcher: `-genv A 1`, `-env A=1`, `-x A`.
struct LauncherVariable {
  std::string name;
  std::string value;
  bool has_value = false;    // without: taken from the launcher's environment
  bool name_in_tail = true;  // the tail is "NAME=VALUE" or "NAME", not "VALUE"
  bool global = false;       // hydra: -genv, for all contexts
  WordTail tail;
};

// One part of an MPMD command; a common command has one. Positions are those of words in the command.
struct AppContext {
  std::size_t options_at = 0;     // its first launcher option
  std::size_t program_at = 0;     // the program's name; == end: no program is named here
  std::size_t end = 0;            // one past its last word: the ":" or the end
  std::string working_directory;  // empty: that of the launcher
  std::string search_path;        // directories in which the launcher looks for the program before PATH
  bool multi_prog = false;        // srun --multi-prog: the "program" is a file that names the programs
  std::string program_list;       // that file, or the one of hydra's -configfile; empty: none
  std::vector<LauncherVariable> variables;
  std::vector<std::string> exports;            // srun: the items of --export; empty: not given
  WordTail exports_tail;                       // srun: the list of --export
  std::vector<std::string> inherited_exports;  // srun: those of SLURM_EXPORT_ENV, which --export would override
};

struct LaunchCommand {
  LauncherFamily family = LauncherFamily::none;
  std::vector<std::string> words;  // the whole command
  std::size_t launcher_at = 0;     // words before it are wrappers (`timeout 60 mpiexec ...`)
  std::vector<AppContext> contexts;
  std::vector<std::string> notes;  // what had to be guessed
};

// Splits a launcher's command into its parts. `words[launcher_at]` is the launcher; with family none it is
// the program and everything behind it its arguments. An option that no table knows is taken to have a value
// unless the word after it is a program that exists; that guess is noted. Pure but for that look. Fails:
// bad_argument when a part names no program; unsupported for options that hide the programs (--app).
Result<LaunchCommand> parse_launch(LauncherFamily family, std::vector<std::string> words, std::size_t launcher_at);

}  // namespace spillway::cli
