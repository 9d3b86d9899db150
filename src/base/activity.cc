#include "base/activity.h"

#include <algorithm>

namespace spillway::base {

void Activity::enter() {
  const std::int64_t now_ns = clock_.now_ns();
  MutexLock lock(mutex_);
  if (calls_inside_++ == 0) entered_ns_ = now_ns;
}

void Activity::leave() {
  const std::int64_t now_ns = clock_.now_ns();
  MutexLock lock(mutex_);
  if (--calls_inside_ == 0) finished_calls_ns_ += now_ns - entered_ns_;
}

std::int64_t Activity::call_ns(std::int64_t now_ns) const {
  MutexLock lock(mutex_);
  return finished_calls_ns_ + (calls_inside_ > 0 ? std::max<std::int64_t>(0, now_ns - entered_ns_) : 0);
}

Activity::Drain::Drain(Activity& activity)
    : activity_(activity), begin_ns_(activity.clock_.now_ns()), call_ns_(activity.call_ns(begin_ns_)) {}

Activity::Drain::~Drain() {
  const std::int64_t end_ns = activity_.clock_.now_ns();
  const std::int64_t busy_ns = end_ns - begin_ns_;
  const std::int64_t inside_ns = std::clamp<std::int64_t>(activity_.call_ns(end_ns) - call_ns_, 0, busy_ns);
  activity_.drain_ns_.fetch_add(busy_ns, std::memory_order_relaxed);
  activity_.hidden_ns_.fetch_add(busy_ns - inside_ns, std::memory_order_relaxed);
}

void Activity::failed(const Status& status) {
  MutexLock lock(mutex_);
  if (errors_++ == 0) first_error_ = status.to_string();
}

RunSummary Activity::summary() const {
  RunSummary summary;
  summary.processes = 1;
  summary.bytes_written = bytes_written_.load(std::memory_order_relaxed);
  summary.bytes_read = bytes_read_.load(std::memory_order_relaxed);
  summary.bytes_staged = bytes_staged_.load(std::memory_order_relaxed);
  summary.drain_ns = drain_ns_.load(std::memory_order_relaxed);
  summary.hidden_ns = hidden_ns_.load(std::memory_order_relaxed);
  summary.waited_ns = call_ns(clock_.now_ns());
  MutexLock lock(mutex_);
  summary.errors = errors_;
  summary.first_error = first_error_;
  return summary;
}

}  // namespace spillway::base
