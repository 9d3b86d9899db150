#include "base/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <string>

namespace spillway::base {
namespace {

// Independent settings, each read on its own: relaxed, paired with nothing.
std::atomic<int> g_level{static_cast<int>(LogLevel::warning)};
std::atomic<int> g_rank{-1};

}  // namespace

void set_log_level(LogLevel level) { g_level.store(static_cast<int>(level), std::memory_order_relaxed); }
void set_log_rank(int rank) { g_rank.store(rank, std::memory_order_relaxed); }

void log(LogLevel level, std::string_view text) {
  if (static_cast<int>(level) > g_level.load(std::memory_order_relaxed)) return;
  const int rank = g_rank.load(std::memory_order_relaxed);
  const std::string line =
      rank < 0 ? fmt::format("spillway: {}\n", text) : fmt::format("spillway[{}]: {}\n", rank, text);
  // A lost message is no reason to disturb the host program.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace spillway::base
