#include "base/file_patterns.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <filesystem>

namespace spillway::base {
namespace {

constexpr std::size_t kPatternsMax = 256;
constexpr std::size_t kAlternativesMax = 256;
constexpr std::size_t kPatternBytesMax = 4096;

// Walks a pattern and knows what a character means where it stands.
class PatternCursor {
 public:
  explicit PatternCursor(std::string_view text) : text_(text) {}

  // Moves to the next character; false at the end.
  bool next() {
    at_ = escaped_next_ ? at_ + 2 : at_ + 1;
    if (at_ >= text_.size()) return false;
    const char c = text_[at_];
    escaped_next_ = c == '\\' && at_ + 1 < text_.size();
    plain_ = !escaped_next_ && !in_bracket(c);
    if (plain_ && c == '{') ++depth_;
    if (plain_ && c == '}') --depth_;
    return depth_ >= 0;
  }
  [[nodiscard]] std::size_t at() const { return at_; }
  // Braces open after this character; negative after one '}' too many, where next() also stops.
  [[nodiscard]] int depth() const { return depth_; }
  // The character is neither escaped nor inside brackets.
  [[nodiscard]] bool is(char c) const { return plain_ && text_[at_] == c; }

 private:
  // A bracket without its end is an ordinary character, as in fnmatch(3).
  bool in_bracket(char c) {
    if (at_ < bracket_end_) return true;
    if (c == '[') {
      const std::size_t end = text_.find(']', at_ + 2);
      if (end != std::string_view::npos && text_.substr(at_, end - at_).find('\n') == std::string_view::npos) {
        bracket_end_ = end + 1;
      }
    }
    return at_ < bracket_end_;
  }

  std::string_view text_;
  std::size_t at_ = static_cast<std::size_t>(-1);
  std::size_t bracket_end_ = 0;
  int depth_ = 0;
  bool escaped_next_ = false;
  bool plain_ = false;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The alternatives of the first brace group, with what stands before and after it.
struct BraceGroup {
  std::string_view before;
  std::vector<std::string_view> alternatives;  // empty: the pattern has no group
  std::string_view after;
};

BraceGroup first_group(std::string_view pattern) {
  BraceGroup group;
  PatternCursor cursor(pattern);
  std::size_t begin = 0;
  while (cursor.next()) {
    if (cursor.is('{') && cursor.depth() == 1) {
      group.before = pattern.substr(0, cursor.at());
      begin = cursor.at() + 1;
    } else if (cursor.is(',') && cursor.depth() == 1) {
      group.alternatives.push_back(pattern.substr(begin, cursor.at() - begin));
      begin = cursor.at() + 1;
    } else if (cursor.is('}') && cursor.depth() == 0) {
      group.alternatives.push_back(pattern.substr(begin, cursor.at() - begin));
      group.after = pattern.substr(cursor.at() + 1);
      break;
    }
  }
  return group;
}

// Stops once `expanded` holds more than kAlternativesMax.
void expand(const std::string& done, std::string_view pattern, std::vector<std::string>& expanded) {
  if (expanded.size() > kAlternativesMax) return;
  const BraceGroup group = first_group(pattern);
  if (group.alternatives.empty()) {
    expanded.push_back(done + std::string(pattern));
    return;
  }
  for (const std::string_view alternative : group.alternatives) {
    expand(done + std::string(group.before), std::string(alternative) + std::string(group.after), expanded);
  }
}

Status check_pattern(std::string_view pattern) {
  if (pattern.size() > kPatternBytesMax) {
    return {Code::bad_argument, fmt::format("a pattern of more than {} characters", kPatternBytesMax)};
  }
  PatternCursor cursor(pattern);
  while (cursor.next()) {
  }
  if (cursor.depth() != 0) {
    return {Code::bad_argument, fmt::format("a brace without its partner in the pattern '{}'", pattern)};
  }
  if (expand_braces(pattern).size() > kAlternativesMax) {
    return {Code::bad_argument,
            fmt::format("more than {} alternatives in the pattern '{}'", kAlternativesMax, pattern)};
  }
  return {};
}

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::string absolute_path(std::string_view path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(std::filesystem::path(path), error);
  return error ? std::string(path) : absolute.lexically_normal().string();
}

}  // namespace

Result<std::vector<std::string>> split_patterns(std::string_view text) {
  std::vector<std::string> patterns;
  while (!text.empty()) {
    PatternCursor cursor(text);
    while (cursor.next() && !(cursor.is('\n') || (cursor.is(',') && cursor.depth() == 0))) {
    }
    // A '}' too many stops the cursor early: take all of the rest, for the message.
    const std::size_t end = cursor.depth() < 0 ? text.size() : std::min(cursor.at(), text.size());
    const std::string_view pattern = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pattern.empty()) continue;
    if (Status status = check_pattern(pattern); !status.ok()) return status;
    if (patterns.size() == kPatternsMax) {
      return Status(Code::bad_argument, fmt::format("more than {} patterns", kPatternsMax));
    }
    patterns.emplace_back(pattern);
  }
  return patterns;
}

std::vector<std::string> expand_braces(std::string_view pattern) {
  std::vector<std::string> expanded;
  expand("", pattern, expanded);
  return expanded;
}

bool managed(const Settings& settings, std::string_view path) {
  if (settings.files.empty()) return true;
  const std::string given(path);
  const std::string absolute = absolute_path(path);
  const std::string base = given.substr(given.rfind('/') + 1);
  for (const std::string& pattern : settings.files) {
    for (const std::string& plain : expand_braces(pattern)) {
      if (matches(plain, given) || matches(plain, absolute) || matches(plain, base)) return true;
    }
  }
  return false;
}

}  // namespace spillway::base
