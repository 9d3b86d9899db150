#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <map>

#include "base/config.h"
#include "base/log.h"
#include "base/spelling.h"
#include "base/status.h"
#include "cli/commands.h"

namespace spillway::cli {
namespace {

// --help with descriptions wrapped to the width of a terminal.
class WrappedFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string /*name*/) const override {
    if (app->get_parent() == nullptr) return "\nUsage: spillway COMMAND [options]\n";
    const bool starts_something = app->get_name() == "run" || app->get_name() == "doctor";
    return fmt::format("\nUsage: spillway {} [options]{}\n", app->get_name(),
                       starts_something ? " [-- LAUNCHER [its options] PROGRAM [arguments]]" : "");
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const std::string type = option->get_type_name();
    const std::string head =
        fmt::format("  {}{}{}\n", make_option_name(option, is_positional), type.empty() ? "" : " ", type);
    return head + wrapped(make_option_desc(option));
  }

 private:
  static std::string wrapped(const std::string& text) {
    constexpr std::size_t kWidth = 92;
    std::string result = "     ";
    std::size_t column = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      if (column > 0 && column + (end - at) > kWidth) {
        result += "\n     ";
        column = 0;
      }
      result += ' ' + text.substr(at, end - at);
      column += end - at + 1;
      at = end + 1;
    }
    return result + '\n';
  }
};

Status bad_arguments(std::string what) { return {Code::bad_argument, std::move(what)}; }

class SpillwayProgram {
 public:
  SpillwayProgram() : app_("Spillway: the output of an unmodified MPI program returns at memory speed.", "spillway") {
    app_.set_version_flag("--version", "spillway " SPILLWAY_VERSION);
    app_.formatter(std::make_shared<WrappedFormatter>());
    app_.footer(
        "`spillway COMMAND --help` tells more of each. Settings may also stand in the environment and in\n"
        "spillway.toml: docs/configuration.md.");
    app_.require_subcommand(0, 1);
    add("run", "Run an MPI program with Spillway.", "", make_run_command());
    add("doctor", "Show what was found on this machine and what would be used.", "", make_doctor_command());
    add("status", "Show the jobs with bytes that are not in their files yet.", "", make_status_command());
    add("recover", "Complete the files of jobs that were killed.", "", make_recover_command());
    add("configuration", "", "hidden", make_configuration_command());
  }

  int run(const std::vector<std::string>& arguments) {
    const auto separator = std::find(arguments.begin(), arguments.end(), "--");
    std::vector<std::string> own(arguments.begin(), separator);
    has_separator_ = separator != arguments.end();
    const std::vector<std::string> command(has_separator_ ? separator + 1 : separator, arguments.end());
    Status status = check_command_name(own);
    if (status.ok()) status = parse(own);
    if (help_was_shown_) return kExitOk;
    CLI::App* chosen = status.ok() ? chosen_app() : nullptr;
    if (status.ok() && chosen == nullptr) status = bad_arguments("no command given; " + accepted_commands());
    if (status.ok()) status = check_separator(*chosen);
    if (status.ok()) return commands_.at(chosen->get_name())->run(command);
    base::log_error(status.what());
    return kExitBadArguments;
  }

 private:
  void add(const std::string& name, const std::string& summary, const std::string& group,
           std::unique_ptr<Command> command) {
    CLI::App* app = app_.add_subcommand(name, summary);
    command->declare(*app);
    // declare() describes the command at length; the list of commands shows one line.
    descriptions_[name] = app->get_description();
    app->description(summary);
    if (!group.empty()) app->group("");
    commands_[name] = std::move(command);
  }

  [[nodiscard]] CLI::App* chosen_app() const {
    const std::vector<CLI::App*> parsed = app_.get_subcommands();
    return parsed.empty() ? nullptr : parsed.front();
  }

  [[nodiscard]] std::vector<std::string_view> visible_commands() const {
    std::vector<std::string_view> names;
    for (const auto& [name, command] : commands_) {
      if (!app_.get_subcommand(name)->get_group().empty()) names.push_back(name);
    }
    return names;
  }
  [[nodiscard]] std::string accepted_commands() const {
    return fmt::format("accepted: {}; see `spillway --help`", fmt::join(visible_commands(), ", "));
  }

  [[nodiscard]] Status check_command_name(const std::vector<std::string>& own) const {
    if (own.empty() || own.front().starts_with('-') || commands_.count(own.front()) > 0) return {};
    return bad_arguments(fmt::format("unknown command '{}'{} ({})", own.front(),
                                     base::did_you_mean(own.front(), visible_commands()), accepted_commands()));
  }

  Status parse(std::vector<std::string> own) {
    if (Status status = separate_values(own); !status.ok()) return status;
    std::reverse(own.begin(), own.end());
    try {
      app_.parse(own);
    } catch (const CLI::CallForHelp&) {
      CLI::App* chosen = chosen_app();
      if (chosen != nullptr) chosen->description(descriptions_[chosen->get_name()]);
      return shown(app_.help());
    } catch (const CLI::CallForVersion& version) {
      return shown(fmt::format("{}\n", version.what()));
    } catch (const CLI::ExtrasError&) {
      return refuse_extras();
    } catch (const CLI::ParseError& error) {
      return bad_arguments(error.what());
    }
    return {};
  }

  Status shown(const std::string& text) {
    fmt::print("{}", text);
    help_was_shown_ = true;
    return {};
  }

  // Gives every option with a value that value as the next word. CLI11 would otherwise refuse the empty one
  // in
  // `--files=` and take `--stage` as the size in `--memory --stage none`.
  [[nodiscard]] Status separate_values(std::vector<std::string>& own) const {
    if (own.empty() || commands_.count(own.front()) == 0) return {};
    const CLI::App* chosen = app_.get_subcommand(own.front());
    for (std::size_t i = 1; i < own.size(); ++i) {
      const std::size_t equals = own[i].find('=');
      const std::string name = own[i].substr(0, equals);
      const CLI::Option* option = name.starts_with("--") ? chosen->get_option_no_throw(name) : nullptr;
      if (option == nullptr || option->get_type_name().empty()) continue;  // unknown, or a flag
      if (equals != std::string::npos) {
        own.insert(own.begin() + static_cast<std::ptrdiff_t>(i) + 1, own[i].substr(equals + 1));
        own[i] = name;
      } else if (i + 1 == own.size() || own[i + 1].starts_with("--")) {
        return bad_arguments(fmt::format("{}: a value is missing; accepted: {}", name, accepted_by(*option)));
      }
      ++i;
    }
    return {};
  }

  static std::string accepted_by(const CLI::Option& option) {
    std::string name = option.get_name().substr(2);
    std::ranges::replace(name, '-', '_');
    const base::OptionSpec* spec = base::find_option(name);
    return spec == nullptr ? option.get_type_name() : base::accepted_text(*spec);
  }

  [[nodiscard]] Status refuse_extras() const {
    const CLI::App* chosen = chosen_app();
    const CLI::App& app = chosen == nullptr ? app_ : *chosen;
    const std::string prefix = chosen == nullptr ? "spillway" : "spillway " + chosen->get_name();
    const std::string extra = app_.remaining(true).front();
    if (!extra.starts_with('-')) {
      const bool takes_command = chosen != nullptr && commands_.at(chosen->get_name())->takes_command();
      return bad_arguments(fmt::format("unexpected argument '{}' ({})", extra,
                                       takes_command
                                           ? fmt::format("accepted: {} [options] -- mpiexec -n 4 ./program", prefix)
                                           : fmt::format("accepted: see `{} --help`", prefix)));
    }
    const std::string name = extra.substr(0, extra.find('='));
    std::vector<std::string> names;
    for (const CLI::Option* known : app.get_options()) names.push_back(known->get_name());
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    return bad_arguments(fmt::format("unknown option {}{} (accepted: {})", name, base::did_you_mean(name, candidates),
                                     fmt::join(names, ", ")));
  }

  [[nodiscard]] Status check_separator(const CLI::App& chosen) const {
    const bool takes_command = commands_.at(chosen.get_name())->takes_command();
    if (has_separator_ && !takes_command) {
      return bad_arguments(fmt::format("'--': spillway {} takes no command (accepted: spillway {})", chosen.get_name(),
                                       chosen.get_name()));
    }
    return {};
  }

  CLI::App app_;
  std::map<std::string, std::unique_ptr<Command>, std::less<>> commands_;
  std::map<std::string, std::string, std::less<>> descriptions_;
  bool has_separator_ = false;
  bool help_was_shown_ = false;
};

}  // namespace

int spillway_main(const std::vector<std::string>& arguments) {
  try {
    return SpillwayProgram().run(arguments);
  } catch (const std::exception& error) {
    base::log_error(fmt::format("internal error: {}", error.what()));
    return kExitInternal;
  }
}

}  // namespace spillway::cli
