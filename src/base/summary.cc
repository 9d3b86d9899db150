#include "base/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/json.h"
#include "base/units.h"

namespace spillway::base {
namespace {

constexpr std::size_t kLineMax = 64 * kKiB;
constexpr std::size_t kTextMax = 4 * kKiB;

// Below this share of hidden time, staging is said not to have helped.
constexpr std::int64_t kHelpfulPercentMin = 5;

struct NumberField {
  std::string_view key;
  std::int64_t RunSummary::*field;
};
constexpr NumberField kNumbers[] = {
    {"processes", &RunSummary::processes},         {"bytes_written", &RunSummary::bytes_written},
    {"bytes_read", &RunSummary::bytes_read},       {"bytes_staged", &RunSummary::bytes_staged},
    {"waited_ns", &RunSummary::waited_ns},         {"hidden_ns", &RunSummary::hidden_ns},
    {"drain_ns", &RunSummary::drain_ns},           {"errors", &RunSummary::errors},
    {"pending_bytes", &RunSummary::pending_bytes},
};

// Reads the subset of JSON that summary_line writes: one flat object of texts and whole numbers.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : line_(line) {}

  Result<RunSummary> read() {
    RunSummary summary;
    if (!take('{')) return refuse("'{'");
    for (bool first = true; !take('}'); first = false) {
      if (!first && !take(',')) return refuse("',' or '}'");
      std::string key;
      if (!text(key)) return refuse("a key in quotes");
      if (!take(':')) return refuse("':'");
      if (!value(summary, key)) return refuse(fmt::format("the value of {}", key));
    }
    if (at_ != line_.size()) return refuse("the end");
    return summary;
  }

 private:
  [[nodiscard]] Status refuse(std::string_view expected) const {
    return {Code::corrupt, fmt::format("summary line: expected {} at character {}", expected, at_)};
  }

  bool take(char c) {
    while (at_ < line_.size() && line_[at_] == ' ') ++at_;
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool value(RunSummary& summary, std::string_view key) {
    std::string read_text;
    if (text(read_text)) {
      if (key == "node") summary.node = read_text;
      if (key == "first_error") summary.first_error = read_text;
      return true;
    }
    std::int64_t read_number = 0;
    const char* end = line_.data() + line_.size();
    const auto [stop, error] = std::from_chars(line_.data() + at_, end, read_number);
    if (error != std::errc() || read_number < 0) return false;
    at_ = static_cast<std::size_t>(stop - line_.data());
    for (const NumberField& number : kNumbers) {
      if (number.key == key) summary.*number.field = read_number;
    }
    return true;
  }

  bool text(std::string& result) {
    if (!take('"')) return false;
    while (at_ < line_.size() && line_[at_] != '"') {
      if (line_[at_] != '\\') {
        result += line_[at_++];
      } else if (!escape(result)) {
        return false;
      }
    }
    return take('"');
  }

  bool escape(std::string& result) {
    const std::string_view rest = line_.substr(at_ + 1);
    if (rest.starts_with('"') || rest.starts_with('\\')) {
      result += rest.front();
      at_ += 2;
      return true;
    }
    unsigned code = 0;
    if (!rest.starts_with('u') || rest.size() < 5) return false;
    const auto [stop, error] = std::from_chars(rest.data() + 1, rest.data() + 5, code, 16);
    if (error != std::errc() || stop != rest.data() + 5) return false;
    result += code < 0x80 ? static_cast<char>(code) : '?';
    at_ += 6;
    return true;
  }

  std::string_view line_;
  std::size_t at_ = 0;
};

std::string seconds(std::int64_t ns) { return fmt::format("{:.2f} s", static_cast<double>(ns) * 1e-9); }

std::string time_text(const RunSummary& total) {
  const std::int64_t processes = std::max<std::int64_t>(total.processes, 1);
  const std::string waited = fmt::format("the program waited {}", seconds(total.waited_ns / processes));
  if (total.bytes_written == 0) return waited;
  if (total.bytes_staged == 0) return waited + ", nothing was staged";
  if (total.hidden_ns == 0) return waited + ", no I/O was hidden: staging did not help";
  const double io_ns = static_cast<double>(total.waited_ns) + static_cast<double>(total.hidden_ns);
  const auto percent = static_cast<std::int64_t>(100.0 * static_cast<double>(total.hidden_ns) / io_ns);
  return fmt::format("{}, {} of I/O were hidden ({} %){}", waited, seconds(total.hidden_ns / processes), percent,
                     percent < kHelpfulPercentMin ? ": staging did not help" : "");
}

std::string error_text(const RunSummary& total) {
  std::string text = total.errors == 1 ? "1 error" : fmt::format("{} errors", total.errors);
  if (total.errors > 0 && !total.first_error.empty()) text += fmt::format(", first: {}", total.first_error);
  if (total.pending_bytes > 0) {
    text += fmt::format("; {} are not in the file system yet", format_bytes(total.pending_bytes));
  }
  return text;
}

}  // namespace

std::string summary_line(const RunSummary& summary) {
  std::string line = fmt::format("{{\"node\":{}", json_quoted(std::string_view(summary.node).substr(0, kTextMax)));
  for (const NumberField& number : kNumbers) line += fmt::format(",\"{}\":{}", number.key, summary.*number.field);
  return line +
         fmt::format(",\"first_error\":{}}}", json_quoted(std::string_view(summary.first_error).substr(0, kTextMax)));
}

Result<RunSummary> parse_summary_line(std::string_view line) {
  if (line.size() > kLineMax) {
    return Status(Code::corrupt, fmt::format("summary line: {} characters, at most {}", line.size(), kLineMax));
  }
  return LineReader(line).read();
}

void add_summary(RunSummary& total, const RunSummary& node) {
  for (const NumberField& number : kNumbers) {
    std::int64_t& sum = total.*number.field;
    if (__builtin_add_overflow(sum, node.*number.field, &sum)) sum = INT64_MAX;
  }
  if (total.first_error.empty()) total.first_error = node.first_error;
}

std::string summary_text(const RunSummary& total) {
  std::string text;
  if (total.bytes_written > 0) {
    text = fmt::format("wrote {}; {}", format_bytes(total.bytes_written), time_text(total));
  } else {
    text = "nothing was written through MPI-IO";
    if (total.bytes_read > 0) {
      text += fmt::format(", {} were read; {}", format_bytes(total.bytes_read), time_text(total));
    }
    if (total.errors == 0 && total.pending_bytes == 0) return text;
  }
  return text + "; " + error_text(total);
}

}  // namespace spillway::base
