#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Clang's thread safety analysis: which field a lock guards, which lock a function needs. Built with
// -Werror=thread-safety by the clang-safety preset; empty elsewhere.
#if defined(__clang__)
#define SPILLWAY_TSA(x) __attribute__((x))
#else
#define SPILLWAY_TSA(x)
#endif
#define SPILLWAY_GUARDED_BY(m) SPILLWAY_TSA(guarded_by(m))
#define SPILLWAY_REQUIRES(...) SPILLWAY_TSA(requires_capability(__VA_ARGS__))
#define SPILLWAY_EXCLUDES(...) SPILLWAY_TSA(locks_excluded(__VA_ARGS__))

namespace spillway::base {

// The only lock in the project between threads of one process. Lock order: docs/architecture.md, "Locks".
// Nothing slow happens under it: no I/O, MPI call, callback or log.
class SPILLWAY_TSA(capability("mutex")) Mutex {
 public:
  void lock() SPILLWAY_TSA(acquire_capability()) { mutex_.lock(); }
  void unlock() SPILLWAY_TSA(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SPILLWAY_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SPILLWAY_TSA(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() SPILLWAY_TSA(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits release and retake the Mutex that the caller holds. Wakes may be spurious: wait in a loop.
class CondVar {
 public:
  void wait(Mutex& mutex) SPILLWAY_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns false when the time passed without a wake.
  bool wait_for(Mutex& mutex, std::chrono::nanoseconds timeout) SPILLWAY_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool woken = condition_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace spillway::base
