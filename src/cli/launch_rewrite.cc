#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/launch_plan.h"

namespace spillway::cli {
namespace {

using base::EnvironmentList;

constexpr std::string_view kPreload = "LD_PRELOAD";

std::string joined_preload(const std::string& before, const std::string& library) {
  if (before.empty()) return library;
  if (fmt::format(":{}:", before).find(fmt::format(":{}:", library)) != std::string::npos) return before;
  return fmt::format("{}:{}", before, library);
}

class Rewriter {
 public:
  Rewriter(const LaunchCommand& command, const std::string& preload, const std::string& preload_before,
           const EnvironmentList& variables)
      : command_(command), preload_(preload), preload_before_(preload_before), variables_(variables) {
    invocation_.words = command.words;
  }

  Invocation rewrite() {
    switch (command_.family) {
      case LauncherFamily::none:
        invocation_.environment = variables_;
        invocation_.environment.emplace_back(kPreload, joined_preload(preload_before_, preload_));
        break;
      case LauncherFamily::hydra:
        rewrite_hydra();
        break;
      case LauncherFamily::prrte:
      case LauncherFamily::orte:
        rewrite_openmpi();
        break;
      case LauncherFamily::srun:
        rewrite_srun();
        break;
    }
    return std::move(invocation_);
  }

 private:
  // All that a rank needs, except what `given` already sets.
  template <typename Given>
  EnvironmentList missing(const Given& given) const {
    EnvironmentList all = variables_;
    all.emplace_back(kPreload, joined_preload(preload_before_, preload_));
    std::erase_if(all, [&](const auto& variable) { return given(variable.first); });
    return all;
  }

  void insert_words(std::size_t at, const std::vector<std::string>& words) {
    invocation_.words.insert(invocation_.words.begin() + static_cast<std::ptrdiff_t>(at), words.begin(), words.end());
  }

  void replace_tail(const WordTail& tail, const std::string& text) {
    std::string& word = invocation_.words[tail.at];
    word = word.substr(0, tail.from) + text;
  }

  // Adds our library to every LD_PRELOAD that the user hands over through the launcher.
  void join_user_preloads() {
    for (const AppContext& context : command_.contexts) {
      for (const LauncherVariable& variable : context.variables) {
        if (variable.name != kPreload) continue;
        const std::string value = joined_preload(variable.has_value ? variable.value : preload_before_, preload_);
        replace_tail(variable.tail, variable.name_in_tail ? fmt::format("{}={}", kPreload, value) : value);
      }
    }
  }

  void rewrite_hydra() {
    join_user_preloads();
    const auto given_for_all = [&](const std::string& name) {
      return std::ranges::any_of(command_.contexts, [&](const AppContext& context) {
        return std::ranges::any_of(context.variables, [&](const LauncherVariable& variable) {
          return variable.global && variable.name == name;
        });
      });
    };
    std::vector<std::string> words;
    for (const auto& [name, value] : missing(given_for_all)) words.insert(words.end(), {"-genv", name, value});
    insert_words(command_.contexts.front().options_at, words);
  }

  void rewrite_openmpi() {
    join_user_preloads();
    // From the last context, so that the positions before it stay true.
    for (auto context = command_.contexts.rbegin(); context != command_.contexts.rend(); ++context) {
      const auto given = [&](const std::string& name) {
        return std::ranges::find(context->variables, name, &LauncherVariable::name) != context->variables.end();
      };
      std::vector<std::string> words;
      for (const auto& [name, value] : missing(given))
        words.insert(words.end(), {"-x", fmt::format("{}={}", name, value)});
      insert_words(context->options_at, words);
    }
  }

  void rewrite_srun() {
    invocation_.environment = variables_;
    for (auto context = command_.contexts.rbegin(); context != command_.contexts.rend(); ++context) {
      const std::string list = fmt::format("{}", fmt::join(exports_of(*context), ","));
      if (context->exports.empty()) {
        insert_words(context->options_at, {fmt::format("--export={}", list)});
      } else {
        replace_tail(context->exports_tail, list);
      }
    }
  }

  // The items of --export with ours: LD_PRELOAD by its value, so that srun itself does not load it; the
  // others by name, since a value may hold commas.
  [[nodiscard]] std::vector<std::string> exports_of(const AppContext& context) const {
    std::vector<std::string> items = context.exports.empty() ? context.inherited_exports : context.exports;
    if (items.empty()) items.emplace_back("ALL");
    std::erase_if(items, [](const std::string& item) { return item == "NONE" || item == "NIL"; });
    const bool all = std::ranges::find(items, "ALL") != items.end();
    std::string before = preload_before_;
    const auto position = std::ranges::find_if(
        items, [](const std::string& item) { return item == kPreload || item.starts_with("LD_PRELOAD="); });
    if (position != items.end()) {
      if (position->size() > kPreload.size()) before = position->substr(kPreload.size() + 1);
      items.erase(position);
    }
    for (const auto& variable : variables_) {
      const auto sets = [&](const std::string& item) { return item.substr(0, item.find('=')) == variable.first; };
      if (!all && std::ranges::none_of(items, sets)) items.push_back(variable.first);
    }
    items.push_back(fmt::format("{}={}", kPreload, joined_preload(before, preload_)));
    return items;
  }

  const LaunchCommand& command_;
  const std::string& preload_;
  const std::string& preload_before_;
  const EnvironmentList& variables_;
  Invocation invocation_;
};

}  // namespace

Invocation rewrite_launch(const LaunchCommand& command, const std::string& preload, const std::string& preload_before,
                          const EnvironmentList& variables) {
  return Rewriter(command, preload, preload_before, variables).rewrite();
}

}  // namespace spillway::cli
