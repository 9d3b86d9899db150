#pragma once

#include "base/mutex.h"
#include "journal/node.h"

namespace spillway::journal {

class SPILLWAY_TSA(scoped_lockable) Node::Locked {
 public:
  explicit Locked(NodeHeader& header) SPILLWAY_TSA(acquire_capability(header.mutex)) : header_(header) {
    // A holder that died left at worst a slot that is counted as used for ever: every change below is ordered so that the tables
    // stay walkable at each step.
    [[maybe_unused]] const bool holder_died = header_.mutex.lock();
  }
  ~Locked() SPILLWAY_TSA(release_capability()) { header_.mutex.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  NodeHeader& header_;
};

}  // namespace spillway::journal
