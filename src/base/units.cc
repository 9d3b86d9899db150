#include "base/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace spillway::base {
namespace {

struct Suffix {
  std::string_view text;
  double factor;
};
constexpr Suffix kSuffixes[] = {
    {"", 1},          {"B", 1},          {"K", 1024},         {"KiB", 1024},          {"M", 1048576},
    {"MiB", 1048576}, {"G", 1073741824}, {"GiB", 1073741824}, {"T", 1099511627776.0}, {"TiB", 1099511627776.0},
    {"kB", 1e3},      {"MB", 1e6},       {"GB", 1e9},         {"TB", 1e12},
};

}  // namespace

Result<std::int64_t> parse_bytes(std::string_view text) {
  const auto refuse = [&] {
    return Status(Code::bad_argument,
                  fmt::format("'{}' is not a size; accepted: a number of bytes, or one with KiB, MiB, GiB "
                              "(also K, M, G) or kB, MB, GB, for example 512MiB",
                              text));
  };
  std::string_view rest = text;
  while (!rest.empty() && rest.back() == ' ') rest.remove_suffix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
  if (error != std::errc() || number < 0 || !std::isfinite(number)) return refuse();
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  for (const Suffix& suffix : kSuffixes) {
    if (rest != suffix.text) continue;
    const double bytes = number * suffix.factor;
    if (bytes >= 9.2e18) return refuse();
    return static_cast<std::int64_t>(std::llround(bytes));
  }
  return refuse();
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, kUnits[unit]);
}

std::string format_duration_ns(std::int64_t ns) {
  const double value = static_cast<double>(ns);
  if (ns >= 1000000000) return fmt::format("{:.{}f} s", value * 1e-9, value < 1e10 ? 2 : value < 1e11 ? 1 : 0);
  if (ns >= 1000000) return fmt::format("{:.1f} ms", value * 1e-6);
  return fmt::format("{:.0f} us", value * 1e-3);
}

}  // namespace spillway::base
