#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

namespace spillway::extent {

// For tests only. Repeats a property over random inputs. Every round has its own seed, named in a failure's
// trace: SPILLWAY_TEST_SEED=<that seed> makes it the first round again, SPILLWAY_TEST_ROUNDS sets how many
// rounds follow.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // Both ends included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool one_in(int n) { return between(1, n) == 1; }

 private:
  std::mt19937_64 engine_;
};

inline std::uint64_t first_test_seed() {
  static const std::uint64_t seed = [] {
    const char* text = std::getenv("SPILLWAY_TEST_SEED");
    const std::uint64_t value = text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device()();
    std::printf("SPILLWAY_TEST_SEED=%llu\n", static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

template <typename Property>
void for_random_rounds(int default_rounds, Property&& property) {
  const char* text = std::getenv("SPILLWAY_TEST_ROUNDS");
  const int rounds = text != nullptr ? std::atoi(text) : default_rounds;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t seed = first_test_seed() + static_cast<std::uint64_t>(round);
    SCOPED_TRACE("SPILLWAY_TEST_SEED=" + std::to_string(seed));
    Random random(seed);
    property(random);
    if (::testing::Test::HasFatalFailure() || ::testing::Test::HasNonfatalFailure()) return;
  }
}

}  // namespace spillway::extent
