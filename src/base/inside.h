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
  friend class Outside;
  static int& depth();
};

// A function of the program that is called from inside: what it calls is intercepted as ever.
class Outside {
 public:
  Outside() : depth_(Inside::depth()) { Inside::depth() = 0; }
  ~Outside() { Inside::depth() = depth_; }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  int depth_;
};

}  // namespace spillway::base
