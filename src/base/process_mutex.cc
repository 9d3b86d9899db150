#include "base/process_mutex.h"

#include <cassert>
#include <cerrno>

namespace spillway::base {

void ProcessMutex::init() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex_, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

bool ProcessMutex::lock() {
  const int error = pthread_mutex_lock(&mutex_);
  if (error == EOWNERDEAD) {
    pthread_mutex_consistent(&mutex_);
    return true;
  }
  assert(error == 0);
  return false;
}

void ProcessMutex::unlock() { pthread_mutex_unlock(&mutex_); }

}  // namespace spillway::base
