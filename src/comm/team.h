#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"

namespace spillway::comm {

// What every rank put in, in rank order.
class Gathered {
 public:
  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + begin, ends_[i] - begin};
  }
  void clear() {
    bytes_.clear();
    ends_.clear();
  }
  void append(std::span<const std::byte> part) {
    bytes_.insert(bytes_.end(), part.begin(), part.end());
    ends_.push_back(bytes_.size());
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::size_t> ends_;
};

// What a member does while it waits for the others.
struct WaitHooks {
  // Called every few hundred microseconds: lets the MPI library make progress, without which a peer may never leave the MPI call
  // it is in and so never arrive here.
  std::function<void()> progress = [] {};
  // Called about once a second: false when a member is known to be dead.
  std::function<bool()> members_alive = [] { return true; };
};

// The ranks of one node working on one file: a barrier and an all-gather in memory that they share, waiting in the kernel
// (futex), not by spinning, so that ranks may outnumber cores.
//
// Every member makes the same calls in the same order. commit() is a barrier that is counted in a word of the shared block, which
// outlives the members: a journal record says "valid once commit N of this team is through", which turns the barrier that ends a
// collective write into the commit of all its records at once (docs/adr/0001).
//
// Threads: one Team object per member, used by one thread at a time.
// Blocks: until every member has arrived.  Fails: peer_lost, then for every member and every later call.
class Team {
 public:
  // Bytes of shared memory, zeroed, that a team of `members` needs; 64-byte aligned. Only touched pages cost memory.
  static std::size_t block_bytes(int members);

  // `member` is this caller's index, 0 <= member < members. The block is used in place and is not owned.
  Team(void* block, int member, int members, WaitHooks hooks);

  [[nodiscard]] int member() const { return member_; }
  [[nodiscard]] int members() const { return members_; }

  Status barrier() { return arrive(false); }

  // As barrier(), and all of what next_commit() numbered is valid in the instant in which the last member arrives.
  Status commit() { return arrive(true); }
  [[nodiscard]] std::uint32_t next_commit() const { return commits_ + 1; }
  // Where in the block the commits are counted: 32 bits, which may wrap.
  static constexpr std::size_t kCommitWordOffset = 0;

  // `out` receives everyone's bytes. One phase per kMailboxBytes of the longest contribution.
  Status allgatherv(std::span<const std::byte> mine, Gathered& out);

  static constexpr std::size_t kMailboxBytes = 4 * 1024;

 private:
  struct Block;
  struct Mailbox;
  Status arrive(bool commit);
  [[nodiscard]] bool ended(std::uint32_t phase) const;
  [[nodiscard]] Mailbox& mailbox(int member, std::uint32_t phase) const;
  Status wait_for_phase(std::uint32_t phase);

  Block* block_;
  int member_;
  int members_;
  std::uint32_t phase_;    // barriers that this member has completed
  std::uint32_t commits_;  // of them commits
  WaitHooks hooks_;
  std::vector<std::vector<std::byte>> partial_;  // longer contributions while they arrive
};

}  // namespace spillway::comm
