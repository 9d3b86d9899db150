#pragma once

namespace spillway::base {

// This thread is at work for Spillway, not for the program: what it calls is not intercepted again. Nests.
// Threads: each its own count.
class Inside {
 public:
  Inside() { ++depth(); }
  ~Inside() { --depth(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  [[nodiscard]] static bool here() { return depth() > 0; }

 private:
  static int& depth();
};

}  // namespace spillway::base
