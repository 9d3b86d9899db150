#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace spillway::base {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4, "the kernel compares 32 bits");

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) {
  timespec timeout{timeout_ns / 1000000000, timeout_ns % 1000000000};
  // Not FUTEX_PRIVATE: the other side may be another process.
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace spillway::base
