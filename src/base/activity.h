#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/summary.h"

namespace spillway::base {

// What one process did and waited for, as it happens: the numbers of the summary.
// Threads: any.
class Activity {
 public:
  explicit Activity(const Clock& clock) : clock_(clock) {}

  // The program is inside an I/O call while one exists. Calls of several threads, or nested ones, count once.
  class Call {
   public:
    explicit Call(Activity& activity) : activity_(activity) { activity_.enter(); }
    ~Call() { activity_.leave(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Activity& activity_;
  };
  // The background thread is busy with the storage while one exists.
  class Drain {
   public:
    explicit Drain(Activity& activity);
    ~Drain();
    Drain(const Drain&) = delete;
    Drain& operator=(const Drain&) = delete;

   private:
    Activity& activity_;
    std::int64_t begin_ns_;
    std::int64_t call_ns_;
  };

  void wrote(std::int64_t bytes) { bytes_written_.fetch_add(bytes, std::memory_order_relaxed); }
  void read(std::int64_t bytes) { bytes_read_.fetch_add(bytes, std::memory_order_relaxed); }
  void staged(std::int64_t bytes) { bytes_staged_.fetch_add(bytes, std::memory_order_relaxed); }
  void failed(const Status& status) SPILLWAY_EXCLUDES(mutex_);

  // Of this process; node and pending_bytes are left to the caller.
  [[nodiscard]] RunSummary summary() const SPILLWAY_EXCLUDES(mutex_);

 private:
  void enter();
  void leave();
  // Time that the program has spent inside calls until now.
  [[nodiscard]] std::int64_t call_ns(std::int64_t now_ns) const SPILLWAY_EXCLUDES(mutex_);

  const Clock& clock_;
  // Plain counts, read once at the end: relaxed, paired with nothing.
  std::atomic<std::int64_t> bytes_written_{0};
  std::atomic<std::int64_t> bytes_read_{0};
  std::atomic<std::int64_t> bytes_staged_{0};
  std::atomic<std::int64_t> drain_ns_{0};
  std::atomic<std::int64_t> hidden_ns_{0};
  mutable Mutex mutex_;
  int calls_inside_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::int64_t entered_ns_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::int64_t finished_calls_ns_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::int64_t errors_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::string first_error_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::base
