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
// Every member makes the same calls in the same order; each call ends one *phase*. The phase counter lives in the shared block
// and outlives its members: a journal record says "valid once phase N of this team has ended", which turns the barrier that
// ends a collective write into the commit of all its records at once (docs/adr/0001).
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

  // The number of the phase that the next call will end.
  [[nodiscard]] std::uint32_t next_phase() const { return phase_ + 1; }
  // Whether the phase has ended, asked of a block by anyone who maps it (recovery, when the members are gone).
  static bool phase_ended(const void* block, std::uint32_t phase);

  Status barrier();
  // `out` receives everyone's bytes. One phase per kMailboxBytes of the longest contribution.
  Status allgatherv(std::span<const std::byte> mine, Gathered& out);

  static constexpr std::size_t kMailboxBytes = 4 * 1024;

 private:
  struct Block;
  struct Mailbox;
  [[nodiscard]] Mailbox& mailbox(int member, std::uint32_t phase) const;
  Status wait_for_phase(std::uint32_t phase);

  Block* block_;
  int member_;
  int members_;
  std::uint32_t phase_;  // phases that this member has completed
  WaitHooks hooks_;
  std::vector<std::vector<std::byte>> partial_;  // longer contributions while they arrive
};

}  // namespace spillway::comm
