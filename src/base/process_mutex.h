#pragma once

#include <pthread.h>

#include "base/mutex.h"

namespace spillway::base {

// A lock between processes, placed in shared memory. Robust: when its holder dies the next one gets it, told so.
// Held for a few table operations only, never across I/O or a wait.
// Threads: any, of any process that maps it.
class SPILLWAY_TSA(capability("process mutex")) ProcessMutex {
 public:
  // Placement: exactly one process calls init() before any other looks at it.
  void init();
  // True when the last holder died inside: the guarded tables may be half changed and must be checked.
  [[nodiscard]] bool lock() SPILLWAY_TSA(acquire_capability());
  void unlock() SPILLWAY_TSA(release_capability());

 private:
  pthread_mutex_t mutex_;
};

}  // namespace spillway::base
