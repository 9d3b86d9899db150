#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "storage/backend.h"

namespace spillway::storage {

enum class Operation { open, read, write, truncate, grow, preallocate, sync, close, lock, remove, attributes };

// One thing that goes wrong.
struct Fault {
  Operation operation = Operation::write;
  int errno_value = 0;              // 0 with torn: the call still succeeds after half of its bytes were done twice
  std::int64_t skip = 0;            // matching calls that pass first
  std::int64_t count = 1;           // matching calls that then fail; negative: all
  std::string path_substring = {};  // empty: every file
  bool torn = false;                // a failing write does half of its bytes first
};

// The plan that one or more fault backends follow; tests change it while files are open.
// Threads: any.
class FaultPlan {
 public:
  void add(const Fault& fault);
  void clear();
  // Calls seen and faults given so far.
  [[nodiscard]] std::int64_t calls() const;
  [[nodiscard]] std::int64_t injected() const;
  // Called before every operation, outside of locks: lets a test hold an operation up.
  void set_observer(std::function<void(Operation, const std::string& path)> observer);

  struct Verdict {
    int errno_value = 0;
    bool torn = false;
  };
  Verdict judge(Operation operation, const std::string& path);

 private:
  mutable base::Mutex mutex_;
  std::vector<Fault> faults_ SPILLWAY_GUARDED_BY(mutex_);
  std::function<void(Operation, const std::string&)> observer_ SPILLWAY_GUARDED_BY(mutex_);
  std::int64_t calls_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::int64_t injected_ SPILLWAY_GUARDED_BY(mutex_) = 0;
};

// Wraps a backend and misbehaves as planned.
std::unique_ptr<Backend> make_fault_backend(std::shared_ptr<Backend> inner, std::shared_ptr<FaultPlan> plan);

}  // namespace spillway::storage
