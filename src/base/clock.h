#pragma once

#include <cstdint>

namespace spillway::base {

// Monotonic time, injected wherever time decides something, so that tests can move it by hand.
// Threads: any.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual std::int64_t now_ns() const = 0;
};

// CLOCK_MONOTONIC; one instance for the process.
[[nodiscard]] const Clock& system_clock();

}  // namespace spillway::base
