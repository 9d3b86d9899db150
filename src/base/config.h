#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"

namespace spillway::base {

enum class Stage { none, memory };
enum class AlgorithmChoice { automatic, two_phase, individual };
enum class ClosePolicy { deferred, drained };
enum class BetweenNodes { written, staged };
enum class DirectIo { automatic, on, off };

// The settings in force for one process, or, after hints, for one file. A plain value.
struct Settings {
  Stage stage = Stage::memory;
  std::int64_t memory_bytes = -1;  // buffer limit of one process; -1: automatic_memory_bytes()
  AlgorithmChoice algorithm = AlgorithmChoice::automatic;
  ClosePolicy close = ClosePolicy::deferred;
  BetweenNodes between_nodes = BetweenNodes::written;
  DirectIo direct = DirectIo::automatic;
  std::int64_t drain_bytes = 4 << 20;   // largest piece that is staged and drained as one (ABT §3.2)
  std::int64_t cycle_bytes = 16 << 20;  // buffer of one aggregator for one round, when nothing is staged
  std::vector<std::string> files;       // patterns of managed files (file_patterns.h); empty: all
  std::string shm_dir = "/dev/shm";     // where the memory journal lives
  std::string trace_dir;                // empty: no trace
  LogLevel log_level = LogLevel::warning;
  bool summary = true;
};

enum class OptionType { choice, bytes, boolean, directory, patterns };

// Where an option may be given. Precedence: hint > environment > file > default; the command line of
// `spillway run` sets the environment of the program it starts.
enum OptionScope : unsigned { kScopeCommandLine = 1, kScopeEnvironment = 2, kScopeFile = 4, kScopeHint = 8 };

// One row of the one table that the parser, `spillway run --help`, docs/configuration.md and error messages
// come from.
struct OptionSpec {
  std::string_view name;  // "drain_bytes": --drain-bytes, SPILLWAY_DRAIN_BYTES, drain_bytes = in
                          // spillway.toml, hint spillway_drain_bytes
  OptionType type = OptionType::choice;
  std::string_view default_text;  // as a user would write it
  std::int64_t min = 0;           // for bytes
  std::int64_t max = 0;
  std::string_view choices;  // choice: "none|memory"; bytes: the word that stands for -1 ("auto"), or empty
  unsigned scopes = 0;       // OptionScope bits
  std::string_view help;     // one or two sentences
};

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] const OptionSpec* find_option(std::string_view name);

// "drain_bytes" -> "--drain-bytes", "SPILLWAY_DRAIN_BYTES".
[[nodiscard]] std::string command_line_name(const OptionSpec& option);
[[nodiscard]] std::string environment_name(const OptionSpec& option);

// What the option accepts, for messages: "none, memory"; "a size from 64KiB to 1GiB, for example 8MiB".
[[nodiscard]] std::string accepted_text(const OptionSpec& option);

// Sets one option from its text; a pattern list replaces the one before. `origin` is named in the message:
// "--memory", "SPILLWAY_MEMORY", "spillway.toml:3: memory", "hint spillway_memory". It does not look at the
// file system. Fails: bad_argument naming origin, value and what is accepted; settings are then unchanged.
Status set_option(Settings& settings, std::string_view name, std::string_view value, std::string_view origin);

// What `memory = auto` means: an eighth of the node's memory, at most half of what the file system of shm_dir
// can hold, shared evenly by the processes of the node.
[[nodiscard]] std::int64_t automatic_memory_bytes(std::int64_t node_bytes, std::int64_t shm_bytes, int processes);

// The text of an option's value in force; parses back to the same value.
[[nodiscard]] std::string option_value_text(const Settings& settings, std::string_view name);

using EnvironmentList = std::vector<std::pair<std::string, std::string>>;
// The SPILLWAY_* variables of this process.
[[nodiscard]] EnvironmentList spillway_environment();

// The configuration file that these variables select: SPILLWAY_CONFIG where it is set (empty: no file at
// all), else ./spillway.toml where it exists, else none (empty).
[[nodiscard]] std::string configuration_file(const EnvironmentList& environment);

// By option name, the origin (as in set_option) of every value that is not the default.
using Origins = std::map<std::string, std::string, std::less<>>;

// Defaults, then the file, then the environment. `file` empty: none. Unknown keys in the file and unknown
// SPILLWAY_ variables are errors too (a spelling mistake must not be silent); variables that Spillway sets
// itself are known. Fails: bad_argument; no_such_file and the like for a file that was asked for.
Result<Settings> load_settings(const EnvironmentList& environment, const std::string& file, Origins* origins = nullptr);

// The text of docs/configuration.md.
[[nodiscard]] std::string configuration_markdown();

}  // namespace spillway::base
