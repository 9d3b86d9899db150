#include "file/hints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "base/spelling.h"

namespace spillway::file {
namespace {

constexpr std::string_view kPrefix = "spillway_";
constexpr std::size_t kForeignKeysMax = 256;

std::optional<std::int64_t> whole_number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::string unknown_hint_text(std::string_view key, std::string_view value) {
  std::vector<std::string> names;
  for (const base::OptionSpec& option : base::option_table()) {
    if ((option.scopes & base::kScopeHint) != 0) names.push_back(fmt::format("{}{}", kPrefix, option.name));
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return fmt::format("hint {}: '{}' is ignored, there is no such hint{}; accepted: {}", key, value,
                     base::did_you_mean(key, candidates), fmt::join(names, ", "));
}

}  // namespace

const Hints::Key Hints::kKeys[] = {
    {"cb_buffer_size", "a number of bytes, 0 or more", &Hints::set_cb_buffer_size, &Hints::show_cb_buffer_size},
    {"cb_nodes", "a number of aggregators, 1 or more", &Hints::set_cb_nodes, &Hints::show_cb_nodes},
    {"cb_config_list", "*:N, with N aggregators on every node, or *:*", &Hints::set_cb_config_list,
     &Hints::show_cb_config_list},
    {"collective_buffering", "true, false", &Hints::set_collective_buffering, &Hints::show_collective_buffering},
    {"romio_cb_write", "enable, disable, automatic", &Hints::set_cb_write, &Hints::show_cb_write},
    {"romio_cb_read", "enable, disable, automatic", &Hints::set_cb_read, &Hints::show_cb_read},
    {"striping_unit", "a number of bytes, 0 or more", &Hints::set_striping_unit, &Hints::show_striping_unit},
    // Facts that libraries ask for; setting them changes nothing.
    {"romio_visibility_immediate", "true", &Hints::ignore, &Hints::show_true},
    {"romio_ds_write", "disable", &Hints::ignore, &Hints::show_disable},
};

void Hints::warn(const std::string& text) const {
  if (warn_) base::log_warning(text);
}

void Hints::set(std::string_view key, std::string_view value) {
  if (key.substr(0, kPrefix.size()) == kPrefix) {
    const std::string_view name = key.substr(kPrefix.size());
    const base::OptionSpec* option = base::find_option(name);
    if (option != nullptr && (option->scopes & base::kScopeHint) != 0) {
      const Status status = base::set_option(settings_, name, value, fmt::format("hint {}", key));
      if (!status) warn(status.what() + "; the hint is ignored");
    } else {
      warn(unknown_hint_text(key, value));
    }
    return;
  }
  for (const Key& known : kKeys) {
    if (known.name != key) continue;
    if (!(this->*known.set)(value)) {
      warn(fmt::format("hint {}: '{}' is not accepted and is ignored; accepted: {}", key, value, known.accepted));
    }
    return;
  }
  const auto found =
      std::find_if(foreign_.begin(), foreign_.end(), [&](const auto& entry) { return entry.first == key; });
  if (found != foreign_.end()) {
    found->second = value;
  } else if (foreign_.size() < kForeignKeysMax) {
    foreign_.emplace_back(key, value);
  }
}

std::vector<std::pair<std::string, std::string>> Hints::in_force() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Key& key : kKeys) all.emplace_back(key.name, (this->*key.show)());
  for (const base::OptionSpec& option : base::option_table()) {
    if ((option.scopes & base::kScopeHint) == 0) continue;
    all.emplace_back(fmt::format("{}{}", kPrefix, option.name), base::option_value_text(settings_, option.name));
  }
  all.insert(all.end(), foreign_.begin(), foreign_.end());
  return all;
}

std::int64_t Hints::limit(std::int64_t default_limit) const {
  if (settings_.stage == base::Stage::none) return 0;
  if (settings_.memory_bytes >= 0) return settings_.memory_bytes;
  return cb_buffer_bytes_.value_or(default_limit);
}

collective::Policy Hints::policy(Buffering buffering) const {
  collective::Policy policy;
  policy.aggregators_max = static_cast<int>(std::min<std::int64_t>(aggregators_max_, INT32_MAX));
  policy.aggregators_per_node_max = static_cast<int>(std::min<std::int64_t>(aggregators_per_node_max_, INT32_MAX));
  policy.alignment = striping_bytes_;
  switch (settings_.algorithm) {
    case base::AlgorithmChoice::two_phase:
      policy.choose = false;
      policy.algorithm = collective::Algorithm::two_phase;
      return policy;
    case base::AlgorithmChoice::individual:
      policy.choose = false;
      policy.algorithm = collective::Algorithm::individual;
      return policy;
    case base::AlgorithmChoice::automatic:
      break;
  }
  policy.choose = buffering == Buffering::automatic;
  policy.algorithm =
      buffering == Buffering::disable ? collective::Algorithm::individual : collective::Algorithm::two_phase;
  return policy;
}

bool Hints::set_cb_buffer_size(std::string_view value) {
  const std::optional<std::int64_t> bytes = whole_number(value);
  if (bytes) cb_buffer_bytes_ = *bytes;
  return bytes.has_value();
}
std::string Hints::show_cb_buffer_size() const {
  return std::to_string(cb_buffer_bytes_.value_or(settings_.cycle_bytes));
}

bool Hints::set_cb_nodes(std::string_view value) {
  const std::optional<std::int64_t> nodes = whole_number(value);
  if (!nodes || *nodes == 0) return false;
  aggregators_max_ = *nodes;
  return true;
}
std::string Hints::show_cb_nodes() const { return std::to_string(aggregators_max_ > 0 ? aggregators_max_ : ranks_); }

bool Hints::set_cb_config_list(std::string_view value) {
  if (value.substr(0, 2) != "*:") return false;
  const std::string_view count = value.substr(2);
  if (count == "*") {
    aggregators_per_node_max_ = 0;
    return true;
  }
  const std::optional<std::int64_t> number = whole_number(count);
  if (!number || *number == 0) return false;
  aggregators_per_node_max_ = *number;
  return true;
}
std::string Hints::show_cb_config_list() const {
  return aggregators_per_node_max_ > 0 ? fmt::format("*:{}", aggregators_per_node_max_) : "*:*";
}

namespace {

template <typename Buffering>
bool parse_buffering(std::string_view value, Buffering& out) {
  if (value == "enable") {
    out = Buffering::enable;
  } else if (value == "disable") {
    out = Buffering::disable;
  } else if (value == "automatic") {
    out = Buffering::automatic;
  } else {
    return false;
  }
  return true;
}

template <typename Buffering>
std::string buffering_text(Buffering buffering) {
  return buffering == Buffering::enable ? "enable" : buffering == Buffering::disable ? "disable" : "automatic";
}

}  // namespace

bool Hints::set_cb_write(std::string_view value) { return parse_buffering(value, write_buffering_); }
bool Hints::set_cb_read(std::string_view value) { return parse_buffering(value, read_buffering_); }
std::string Hints::show_cb_write() const { return buffering_text(write_buffering_); }
std::string Hints::show_cb_read() const { return buffering_text(read_buffering_); }

bool Hints::set_collective_buffering(std::string_view value) {
  if (value != "true" && value != "false") return false;
  write_buffering_ = read_buffering_ = value == "true" ? Buffering::automatic : Buffering::disable;
  return true;
}
std::string Hints::show_collective_buffering() const {
  return write_buffering_ == Buffering::disable ? "false" : "true";
}

bool Hints::set_striping_unit(std::string_view value) {
  const std::optional<std::int64_t> bytes = whole_number(value);
  if (bytes) striping_bytes_ = *bytes;
  return bytes.has_value();
}
std::string Hints::show_striping_unit() const { return std::to_string(striping_bytes_); }

bool Hints::ignore(std::string_view) { return true; }

}  // namespace spillway::file
