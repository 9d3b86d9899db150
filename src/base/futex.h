#pragma once

#include <atomic>
#include <cstdint>

namespace spillway::base {

// Sleeping on a word that may be shared between processes. Waiting in the kernel instead of spinning is what lets several
// ranks share a core.
// Threads: any.

// Returns when the word differs from `expected`, someone woke it, or timeout_ns passed (spurious returns are normal).
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns);
void futex_wake_all(const std::atomic<std::uint32_t>& word);

}  // namespace spillway::base
