#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace spillway::base {

inline constexpr std::int64_t kKiB = 1024;
inline constexpr std::int64_t kMiB = 1024 * kKiB;
inline constexpr std::int64_t kGiB = 1024 * kMiB;

// "512MiB", "64 KiB", "4M", "1.5GiB", "100000" -> bytes. Suffixes are powers of 1024 for both K and KiB (as in
// every other HPC tool), powers of 1000 for kB, MB, GB. Fails: bad_argument, naming the text and what is accepted.
Result<std::int64_t> parse_bytes(std::string_view text);

// 1536 -> "1.5 KiB"; exact below 1024.
std::string format_bytes(std::int64_t bytes);

// 1234567890 ns -> "1.23 s"; "12.3 ms"; "45 us".
std::string format_duration_ns(std::int64_t ns);

template <typename T>
constexpr T round_up(T value, T multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
template <typename T>
constexpr T round_down(T value, T multiple) {
  return value / multiple * multiple;
}

}  // namespace spillway::base
