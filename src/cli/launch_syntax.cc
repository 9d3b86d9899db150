#include "cli/launch_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "cli/find_program.h"
#include "cli/launcher_options.h"

namespace spillway::cli {
namespace {

// Reads the options of one launcher command, word by word.
class LaunchParser {
 public:
  LaunchParser(LauncherFamily family, std::vector<std::string> words, std::size_t launcher_at) {
    command_.family = family;
    command_.words = std::move(words);
    command_.launcher_at = launcher_at;
  }

  Result<LaunchCommand> parse() {
    at_ = command_.launcher_at + 1;
    do {
      if (Status status = parse_context(); !status.ok()) return status;
    } while (at_ < words().size());
    return std::move(command_);
  }

 private:
  [[nodiscard]] const std::vector<std::string>& words() const { return command_.words; }
  [[nodiscard]] bool openmpi() const { return is_openmpi(command_.family); }

  Status parse_context() {
    context_ = {};
    context_.options_at = at_;
    while (at_ < words().size() && words()[at_].size() > 1 && words()[at_].starts_with('-')) {
      if (words()[at_] == "--" && command_.family != LauncherFamily::hydra) {
        ++at_;
        break;
      }
      if (Status status = parse_option(); !status.ok()) return status;
    }
    context_.program_at = std::min(at_, words().size());
    context_.end = static_cast<std::size_t>(
        std::find(words().begin() + static_cast<std::ptrdiff_t>(context_.program_at), words().end(), ":") -
        words().begin());
    const bool names_program = context_.program_at < context_.end;
    if (context_.multi_prog && names_program) context_.program_list = words()[context_.program_at];
    if (!names_program && context_.program_list.empty()) {
      return {Code::bad_argument,
              fmt::format("no program found behind the options of {0}; accepted: {0} [its options] PROGRAM "
                          "[arguments]",
                          words()[command_.launcher_at])};
    }
    at_ = context_.end + 1;
    command_.contexts.push_back(context_);
    return {};
  }

  Status parse_option() {
    const std::string& word = words()[at_];
    if (command_.family == LauncherFamily::srun && !word.starts_with("--")) {
      parse_srun_short(word);
      return {};
    }
    const std::size_t dashes = word.starts_with("--") ? 2 : 1;
    const std::size_t equals = word.find('=');
    const bool has_equals = equals != std::string::npos;
    const std::string name = word.substr(dashes, has_equals ? equals - dashes : std::string::npos);
    if (openmpi() && (name == "app" || name == "appfile")) {
      return {Code::unsupported,
              fmt::format("{}: the programs in such a file cannot be reached; accepted: programs on the command line, "
                          "separated by ':'",
                          word)};
    }
    // The first value is behind the '=' or is the next word.
    const WordTail value = has_equals ? WordTail{at_, equals + 1} : WordTail{at_ + 1, 0};
    const auto values = static_cast<std::size_t>(values_of(name, value));
    if (name == "multi-prog") context_.multi_prog = true;
    if ((values > 0 || has_equals) && value.at < words().size()) note_value(name, value);
    at_ += has_equals ? std::max<std::size_t>(values, 1) : values + 1;
    return {};
  }

  // The number of values of an option; `value` is where the first would be.
  int values_of(const std::string& name, const WordTail& value) {
    const bool has_equals = value.from > 0;
    if (command_.family == LauncherFamily::hydra && (name == "genv" || name == "env")) {
      return value.at < words().size() && words()[value.at].find('=', value.from) != std::string::npos ? 1 : 2;
    }
    if (const std::optional<int> values = option_values(command_.family, name)) return *values;
    if (has_equals) return 1;
    const bool attached =
        !words()[at_].starts_with("--") && kOpenMpiShortWithValue.find(name[0]) != std::string_view::npos;
    if (openmpi() && attached) return 0;  // -n4
    const bool is_program = value.at < words().size() && find_program(words()[value.at], {}).ok();
    command_.notes.push_back(fmt::format("the launcher's option '{}' is not known to Spillway; it was taken to have {}",
                                         words()[at_], is_program ? "no value" : "one value"));
    return is_program ? 0 : 1;
  }

  void note_value(const std::string& name, const WordTail& value) {
    const LauncherFamily family = command_.family;
    const std::string text = words()[value.at].substr(value.from);
    if ((family == LauncherFamily::hydra && (name == "genv" || name == "env")) || (openmpi() && name == "x")) {
      note_variable(text, value, name == "genv");
    } else if (family == LauncherFamily::hydra && name == "configfile") {
      context_.program_list = text;
    } else if (name == "wdir" || name == "wd" || name == "gwdir" ||
               (family == LauncherFamily::srun && name == "chdir")) {
      context_.working_directory = text;
    } else if (family != LauncherFamily::srun && (name == "path" || name == "gpath")) {
      context_.search_path = text;
    } else if (family == LauncherFamily::srun && name == "export") {
      note_exports(text, value);
    }
  }

  void note_variable(const std::string& text, const WordTail& tail, bool global) {
    LauncherVariable variable;
    variable.global = global;
    const std::size_t equals = text.find('=');
    variable.name = text.substr(0, equals);
    variable.tail = tail;
    variable.has_value = equals != std::string::npos || !openmpi();
    variable.name_in_tail = equals != std::string::npos || openmpi();
    if (equals != std::string::npos) {
      variable.value = text.substr(equals + 1);
    } else if (!openmpi()) {
      variable.tail = {tail.at + 1, 0};
      if (tail.at + 1 >= words().size()) return;
      variable.value = words()[tail.at + 1];
    }
    context_.variables.push_back(std::move(variable));
  }

  void note_exports(std::string_view list, const WordTail& tail) {
    context_.exports_tail = tail;
    context_.exports.clear();
    char quote = '\0';
    std::string item;
    for (const char c : list) {
      if (c == '\'' || c == '"') quote = quote == '\0' ? c : quote == c ? '\0' : quote;
      if (c == ',' && quote == '\0') {
        context_.exports.push_back(std::move(item));
        item.clear();
      } else {
        item += c;
      }
    }
    context_.exports.push_back(std::move(item));
  }

  void parse_srun_short(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      if (kSrunShortWithValue.find(word[i]) == std::string_view::npos) continue;
      const bool attached = i + 1 < word.size();
      const std::size_t value_at = attached ? at_ : at_ + 1;
      if (word[i] == 'D' && value_at < words().size()) note_value("chdir", {value_at, attached ? i + 1 : 0});
      at_ = value_at + 1;
      return;
    }
    ++at_;
  }

  LaunchCommand command_;
  AppContext context_;
  std::size_t at_ = 0;
};

}  // namespace

Result<LaunchCommand> parse_launch(LauncherFamily family, std::vector<std::string> words, std::size_t launcher_at) {
  if (family != LauncherFamily::none) return LaunchParser(family, std::move(words), launcher_at).parse();
  LaunchCommand command;
  command.words = std::move(words);
  command.launcher_at = launcher_at;
  AppContext context;
  context.options_at = launcher_at;
  context.program_at = launcher_at;
  context.end = command.words.size();
  command.contexts.push_back(std::move(context));
  return command;
}

}  // namespace spillway::cli
