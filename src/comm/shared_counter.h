#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.h"

namespace spillway::comm {

// A number that all ranks of a communicator read and move: the shared file pointer.
// Threads: the rank's own.  Blocks: perhaps for another rank's progress.
class SharedCounter {
 public:
  virtual ~SharedCounter() = default;
  // Adds and returns the value before.
  virtual Result<std::int64_t> fetch_add(std::int64_t amount) = 0;
  virtual Status set(std::int64_t value) = 0;
};

// In memory that all its ranks share.
class LocalSharedCounter final : public SharedCounter {
 public:
  // `value` outlives the counter and is used in place.
  explicit LocalSharedCounter(std::atomic<std::int64_t>& value) : value_(value) {}
  // acq_rel: a rank that takes its place after another sees what that one did before.
  Result<std::int64_t> fetch_add(std::int64_t amount) override {
    return value_.fetch_add(amount, std::memory_order_acq_rel);
  }
  Status set(std::int64_t value) override {
    value_.store(value, std::memory_order_release);
    return {};
  }

 private:
  std::atomic<std::int64_t>& value_;
};

}  // namespace spillway::comm
