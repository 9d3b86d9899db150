#include "base/clock.h"

#include <ctime>

namespace spillway::base {
namespace {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] std::int64_t now_ns() const override {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
  }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace spillway::base
