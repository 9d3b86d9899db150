#include "base/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <variant>

#include "base/config_file.h"
#include "base/file_patterns.h"
#include "base/spelling.h"
#include "base/units.h"

namespace spillway::base {
namespace {

constexpr unsigned kProcess = kScopeCommandLine | kScopeEnvironment | kScopeFile;
constexpr unsigned kEverywhere = kProcess | kScopeHint;

constexpr std::string_view kPrefix = "SPILLWAY_";

// Enumerators and their names in `choices` have the same order, so a choice is handled by its index.
using Field =
    std::variant<Stage Settings::*, AlgorithmChoice Settings::*, ClosePolicy Settings::*, BetweenNodes Settings::*,
                 DirectIo Settings::*, LogLevel Settings::*, std::int64_t Settings::*, bool Settings::*,
                 std::string Settings::*, std::vector<std::string> Settings::*>;

constexpr OptionSpec kTable[] = {
    {"stage", OptionType::choice, "memory", 0, 0, "none|memory", kEverywhere,
     "Where written bytes wait before they reach the file system. `memory`: in shared memory, so that "
     "a write returns at memory speed; `none`: nowhere, a write returns when the file system has it."},
    {"memory", OptionType::bytes, "auto", 0, 1024 * kGiB, "auto", kEverywhere,
     "Most memory that one process may fill with staged bytes; a writer that finds it full waits. "
     "`auto`: an eighth of the node's memory, at most half of what `shm_dir` can hold, divided by the "
     "processes of the node; 0: as with `stage = none`."},
    {"algorithm", OptionType::choice, "auto", 0, 0, "auto|two_phase|individual", kEverywhere,
     "How the ranks of a collective call share the work. `two_phase`: a few aggregators write "
     "contiguous file domains; `individual`: each rank writes its own pieces without communication; "
     "`auto`: chosen for each call."},
    {"close", OptionType::choice, "deferred", 0, 0, "deferred|drained", kEverywhere,
     "When MPI_File_close returns. `deferred`: at once, the rest is drained behind the computation; "
     "`drained`: when every byte is in the file system."},
    {"between_nodes", OptionType::choice, "written", 0, 0, "written|staged", kProcess,
     "What a job on several nodes does so that every node sees every byte. `written`: files that are opened by ranks "
     "of "
     "several nodes together are not staged, and MPI_File_close waits as with `close = drained`; `staged`: as on one "
     "node, for programs in which no node alone writes over, or opens again, what another node has just written."},
    {"files", OptionType::patterns, "", 0, 0, "", kProcess,
     "Which files Spillway manages, by patterns; every other file is left to the MPI's own MPI-IO. "
     "Empty: all. On the command line the option may be repeated."},
    {"direct", OptionType::choice, "auto", 0, 0, "auto|on|off", kProcess,
     "Whether draining goes around the page cache (O_DIRECT). `auto`: where the file system offers it "
     "and the piece is aligned."},
    {"drain_bytes", OptionType::bytes, "4MiB", 64 * kKiB, 64 * kMiB, "", kProcess,
     "Largest piece that is staged and drained as one."},
    {"cycle_bytes", OptionType::bytes, "16MiB", 64 * kKiB, kGiB, "", kProcess,
     "Buffer of one aggregator for one round of a collective call when nothing is staged."},
    {"shm_dir", OptionType::directory, "/dev/shm", 0, 0, "", kProcess,
     "Directory of the memory journal, on a file system in memory. It must exist on every node."},
    {"trace", OptionType::directory, "", 0, 0, "", kProcess,
     "Existing directory in which every process leaves a trace of its phases. Empty: no trace."},
    {"log_level", OptionType::choice, "warning", 0, 0, "error|warning|info|debug", kProcess,
     "Which messages are printed on stderr: those of this level and the more important ones."},
    {"summary", OptionType::boolean, "on", 0, 0, "", kProcess,
     "Whether one line about the run is printed on stderr when it has ended."},
};

// The same order as kTable.
constexpr Field kFields[] = {
    &Settings::stage,         &Settings::memory_bytes, &Settings::algorithm, &Settings::close,
    &Settings::between_nodes, &Settings::files,        &Settings::direct,    &Settings::drain_bytes,
    &Settings::cycle_bytes,   &Settings::shm_dir,      &Settings::trace_dir, &Settings::log_level,
    &Settings::summary,
};
static_assert(std::size(kFields) == std::size(kTable));

// Variables that are no options: set by `spillway run`, or read before there are settings.
struct OwnVariable {
  std::string_view name;
  std::string_view help;
};
constexpr OwnVariable kOwnVariables[] = {
    {"SPILLWAY_CONFIG", "The configuration file to read instead of ./spillway.toml. Empty: none."},
    {"SPILLWAY_LIBDIR", "The directory in which `spillway` looks for the preload libraries."},
    {"SPILLWAY_JOB", "The name of the job, the same in all its processes. Set by `spillway run`."},
    {"SPILLWAY_SUMMARY_FILE", "The file to which the last process of a node adds its summary. Set by `spillway run`."},
};

std::vector<std::string_view> split_choices(std::string_view choices) {
  std::vector<std::string_view> names;
  while (!choices.empty()) {
    const std::size_t end = std::min(choices.find('|'), choices.size());
    names.push_back(choices.substr(0, end));
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return names;
}

const Field& field_of(const OptionSpec& option) { return kFields[&option - std::data(kTable)]; }

// 4194304 -> "4MiB"; sizes that are not whole in a larger unit stay plain numbers, so that nothing is
// rounded.
std::string bytes_text(const OptionSpec& option, std::int64_t bytes) {
  if (bytes < 0) return std::string(option.choices);
  struct Unit {
    std::int64_t bytes;
    std::string_view name;
  };
  constexpr Unit kUnits[] = {{1024 * kGiB, "TiB"}, {kGiB, "GiB"}, {kMiB, "MiB"}, {kKiB, "KiB"}};
  for (const Unit& unit : kUnits) {
    if (bytes >= unit.bytes && bytes % unit.bytes == 0) return fmt::format("{}{}", bytes / unit.bytes, unit.name);
  }
  return fmt::format("{}", bytes);
}

// Writes a text into a field; false where the text is not accepted. One overload for each type of field.
struct FieldWriter {
  const OptionSpec& option;
  std::string_view value;
  Settings& settings;

  template <typename Enum>
  requires std::is_enum_v<Enum>
  bool operator()(Enum Settings::*field) const {
    const std::vector<std::string_view> names = split_choices(option.choices);
    const auto found = std::find(names.begin(), names.end(), value);
    if (found == names.end()) return false;
    settings.*field = static_cast<Enum>(found - names.begin());
    return true;
  }
  bool operator()(std::int64_t Settings::*field) const {
    if (!option.choices.empty() && value == option.choices) {
      settings.*field = -1;
      return true;
    }
    const Result<std::int64_t> bytes = parse_bytes(value);
    if (!bytes.ok() || bytes.value() < option.min || bytes.value() > option.max) return false;
    settings.*field = bytes.value();
    return true;
  }
  bool operator()(bool Settings::*field) const {
    constexpr std::string_view kTrue[] = {"on", "true", "yes", "1"};
    constexpr std::string_view kFalse[] = {"off", "false", "no", "0"};
    const bool is_true = std::ranges::find(kTrue, value) != std::end(kTrue);
    if (!is_true && std::ranges::find(kFalse, value) == std::end(kFalse)) return false;
    settings.*field = is_true;
    return true;
  }
  bool operator()(std::string Settings::*field) const {
    if (value.empty() && !option.default_text.empty()) return false;
    settings.*field = value;
    return true;
  }
  bool operator()(std::vector<std::string> Settings::*field) const {
    Result<std::vector<std::string>> patterns = split_patterns(value);
    if (!patterns.ok()) return false;
    settings.*field = std::move(patterns.value());
    return true;
  }
};

struct FieldReader {
  const OptionSpec& option;
  const Settings& settings;

  template <typename Enum>
  requires std::is_enum_v<Enum> std::string operator()(Enum Settings::*field) const {
    return std::string(split_choices(option.choices)[static_cast<std::size_t>(settings.*field)]);
  }
  std::string operator()(std::int64_t Settings::*field) const { return bytes_text(option, settings.*field); }
  std::string operator()(bool Settings::*field) const { return settings.*field ? "on" : "off"; }
  std::string operator()(std::string Settings::*field) const { return settings.*field; }
  std::string operator()(std::vector<std::string> Settings::*field) const {
    return fmt::format("{}", fmt::join(settings.*field, ","));
  }
};

// Why a pattern list was refused is worth more than that it was.
std::string reason(const OptionSpec& option, std::string_view value) {
  if (option.type != OptionType::patterns) return "is not accepted";
  return fmt::format("is not accepted: {}", split_patterns(value).status().what());
}

Status unknown_variable(std::string_view name) {
  std::vector<std::string> names;
  for (const OptionSpec& option : kTable) names.push_back(environment_name(option));
  for (const OwnVariable& variable : kOwnVariables) names.emplace_back(variable.name);
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return {Code::bad_argument, fmt::format("unknown variable {}{} (accepted: {})", name, did_you_mean(name, candidates),
                                          fmt::join(names, ", "))};
}

Status set_from_environment(Settings& settings, std::string_view variable, std::string_view value, Origins* origins) {
  const auto own = [&](const OwnVariable& candidate) { return candidate.name == variable; };
  if (std::any_of(std::begin(kOwnVariables), std::end(kOwnVariables), own)) return {};
  for (const OptionSpec& option : kTable) {
    if (environment_name(option) != variable) continue;
    if (origins != nullptr) (*origins)[std::string(option.name)] = variable;
    return set_option(settings, option.name, value, variable);
  }
  return unknown_variable(variable);
}

Status set_from_file(Settings& settings, const FileEntry& entry, std::string_view file, Origins* origins) {
  const std::string origin = fmt::format("{}:{}: {}", file, entry.line, entry.key);
  if (find_option(entry.key) == nullptr) {
    std::vector<std::string_view> names;
    for (const OptionSpec& option : kTable) names.push_back(option.name);
    return {Code::bad_argument, fmt::format("{}:{}: unknown key '{}'{} (accepted: {})", file, entry.line, entry.key,
                                            did_you_mean(entry.key, names), fmt::join(names, ", "))};
  }
  if (origins != nullptr) (*origins)[entry.key] = origin;
  return set_option(settings, entry.key, entry.value, origin);
}

std::string places_text(const OptionSpec& option) {
  std::string text = fmt::format("`{} VALUE`, `{}`, `{} =` in the file", command_line_name(option),
                                 environment_name(option), option.name);
  if ((option.scopes & kScopeHint) != 0) text += fmt::format(", hint `spillway_{}`", option.name);
  return text;
}

}  // namespace

std::span<const OptionSpec> option_table() { return kTable; }

const OptionSpec* find_option(std::string_view name) {
  const auto found = std::ranges::find(kTable, name, &OptionSpec::name);
  return found == std::end(kTable) ? nullptr : found;
}

std::string command_line_name(const OptionSpec& option) {
  std::string name = fmt::format("--{}", option.name);
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string environment_name(const OptionSpec& option) {
  std::string name(kPrefix);
  for (const char c : option.name) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::string accepted_text(const OptionSpec& option) {
  switch (option.type) {
    case OptionType::choice:
      return fmt::format("{}", fmt::join(split_choices(option.choices), ", "));
    case OptionType::boolean:
      return "on, off";
    case OptionType::directory:
      return "the path of a directory";
    case OptionType::patterns:
      return "file name patterns as in the shell, separated by commas, for example '*.h5,/scratch/run1/*'";
    case OptionType::bytes:
      break;
  }
  return fmt::format("{}{}a size from {} to {}, for example 8MiB", option.choices,
                     option.choices.empty() ? "" : ", or ", option.min == 0 ? "0" : bytes_text(option, option.min),
                     bytes_text(option, option.max));
}

Status set_option(Settings& settings, std::string_view name, std::string_view value, std::string_view origin) {
  const OptionSpec* option = find_option(name);
  if (option == nullptr) return {Code::bad_argument, fmt::format("{}: no option is named '{}'", origin, name)};
  if (std::visit(FieldWriter{*option, value, settings}, field_of(*option))) return {};
  return {Code::bad_argument,
          fmt::format("{}: '{}' {}; accepted: {}", origin, value, reason(*option, value), accepted_text(*option))};
}

std::int64_t automatic_memory_bytes(std::int64_t node_bytes, std::int64_t shm_bytes, int processes) {
  return std::min(node_bytes / 8, shm_bytes / 2) / std::max(processes, 1);
}

std::string option_value_text(const Settings& settings, std::string_view name) {
  const OptionSpec* option = find_option(name);
  return option == nullptr ? std::string() : std::visit(FieldReader{*option, settings}, field_of(*option));
}

EnvironmentList spillway_environment() {
  EnvironmentList variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (!text.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::string configuration_file(const EnvironmentList& environment) {
  for (const auto& [name, value] : environment) {
    if (name == "SPILLWAY_CONFIG") return value;
  }
  constexpr const char* kDefaultFile = "spillway.toml";
  return ::access(kDefaultFile, F_OK) == 0 ? kDefaultFile : "";
}

Result<Settings> load_settings(const EnvironmentList& environment, const std::string& file, Origins* origins) {
  Settings settings;
  if (!file.empty()) {
    const Result<std::vector<FileEntry>> entries = read_configuration_file(file);
    if (!entries.ok()) return entries.status();
    for (const FileEntry& entry : entries.value()) {
      if (Status status = set_from_file(settings, entry, file, origins); !status.ok()) return status;
    }
  }
  for (const auto& [name, value] : environment) {
    if (Status status = set_from_environment(settings, name, value, origins); !status.ok()) return status;
  }
  return settings;
}

std::string configuration_markdown() {
  std::string text =
      "# Configuration\n\n"
      "This page is made from the table in `src/base/config.cc` by `spillway configuration`; a test keeps it "
      "so.\n\n"
      "A setting may be given in several places; the first of these wins: an `MPI_Info` hint (for one file), "
      "the\n"
      "command line of `spillway run`, the environment, the file `spillway.toml` in the working directory, "
      "the\n"
      "default. A value that is not accepted is an error that names it; as a hint it is ignored, as MPI "
      "demands, and\n"
      "reported. Sizes are bytes, or numbers with KiB, MiB, GiB, TiB (also K, M, G, T) or kB, MB, GB, TB.\n\n"
      "| setting | default | accepted | meaning | where |\n|---|---|---|---|---|\n";
  for (const OptionSpec& option : kTable) {
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", option.name,
                        option.default_text.empty() ? "empty" : fmt::format("`{}`", option.default_text),
                        accepted_text(option), option.help, places_text(option));
  }
  text +=
      "\n## The file\n\n"
      "`spillway.toml` holds the settings as keys; `files` is a text or an array of texts:\n\n"
      "```toml\nmemory = \"512MiB\"\nclose = \"drained\"\nfiles = [\"*.h5\", \"/scratch/run1/*\"]\n```\n\n"
      "`spillway run` reads the file once and hands every setting to all ranks through their environment.\n\n"
      "## Patterns\n\n"
      "A pattern of `files` is one of fnmatch(3): `*`, `?`, `[a-z]`, a backslash for the character itself. "
      "`*` and\n"
      "`?` also match `/`. `{a,b}` stands for either. Commas and newlines separate patterns, except that a "
      "comma in\n"
      "braces or brackets, or after a backslash, belongs to its pattern. A file is managed when a pattern "
      "matches its\n"
      "path as the program gives it, its absolute path, or its last component.\n\n"
      "## Other variables\n\n| variable | meaning |\n|---|---|\n";
  for (const OwnVariable& variable : kOwnVariables)
    text += fmt::format("| `{}` | {} |\n", variable.name, variable.help);
  text +=
      "\nAny other variable whose name begins with `SPILLWAY_` is an error: a spelling mistake must not be "
      "silent.\n";
  return text;
}

}  // namespace spillway::base
