#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"

namespace spillway::base {

// What one process spent its time on, one line of JSON each, in <dir>/trace-<rank>-<pid>.jsonl; docs/formats/trace.md.
// Events gather in memory and are written by whoever calls flush(): the background thread, every second or so. When the buffer is
// full, events are dropped and their number is written at the end.
//
// Threads: any.  Blocks: flush() on the file.
class Trace {
 public:
  // `dir` must exist.
  static Result<std::unique_ptr<Trace>> open(const std::string& dir, int rank);
  ~Trace() { flush(); }

  struct Event {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::string_view what;  // "write_all", "drain", "wait_space", ...
    std::int64_t bytes = 0;
    std::string_view file;
  };
  void add(const Event& event) SPILLWAY_EXCLUDES(mutex_);
  void flush() SPILLWAY_EXCLUDES(mutex_);

 private:
  explicit Trace(UniqueFd fd) : fd_(std::move(fd)) {}
  static constexpr std::size_t kBufferBytesMax = 4 << 20;

  UniqueFd fd_;
  Mutex mutex_;
  std::string buffer_ SPILLWAY_GUARDED_BY(mutex_);
  std::int64_t dropped_ SPILLWAY_GUARDED_BY(mutex_) = 0;
};

}  // namespace spillway::base
