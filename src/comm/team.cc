#include "comm/team.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/futex.h"

namespace spillway::comm {
namespace {

constexpr std::int64_t kFirstWaitNs = 100'000;
constexpr std::int64_t kLongestWaitNs = 2'000'000;
constexpr std::int64_t kLivenessNs = 1'000'000'000;
constexpr int kSpins = 200;

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

struct Team::Block {
  // Commits through. Release by the last member to arrive; acquired by whoever looks at a record.
  alignas(64) std::atomic<std::uint32_t> commits;
  // Barriers ended. Released by the last member to arrive, acquired by the others: what a member wrote to shared memory before it
  // arrived is seen by all after the phase.
  alignas(64) std::atomic<std::uint32_t> phase;
  // Members that have arrived in the current phase; acq_rel, so that the last one has seen all others.
  alignas(64) std::atomic<std::uint32_t> arrived;
  // Non-zero once a member was found dead; set before the wake that makes others look.
  std::atomic<std::uint32_t> broken;
};

// Two per member, used in turn: while slow members still read those of phase N, fast ones fill those of phase N + 1; nobody can
// be two phases ahead.
struct alignas(64) Team::Mailbox {
  std::uint64_t total_bytes;
  std::byte bytes[kMailboxBytes - sizeof(std::uint64_t)];
};

std::size_t Team::block_bytes(int members) {
  return sizeof(Block) + 2 * static_cast<std::size_t>(members) * sizeof(Mailbox);
}

Team::Team(void* block, int member, int members, WaitHooks hooks)
    : block_(static_cast<Block*>(block)), member_(member), members_(members), hooks_(std::move(hooks)) {
  assert(member >= 0 && member < members);
  // A reused block goes on counting; no phase can end before every member has come.
  static_assert(offsetof(Block, commits) == kCommitWordOffset);
  phase_ = block_->phase.load(std::memory_order_acquire);
  commits_ = block_->commits.load(std::memory_order_acquire);
}

bool Team::ended(std::uint32_t phase) const {
  return static_cast<std::int32_t>(block_->phase.load(std::memory_order_acquire) - phase) >= 0;  // the counter may wrap
}

Team::Mailbox& Team::mailbox(int member, std::uint32_t phase) const {
  auto* boxes = reinterpret_cast<Mailbox*>(block_ + 1);
  return boxes[2 * member + static_cast<int>(phase & 1)];
}

Status Team::arrive(bool commit) {
  const std::uint32_t ending = phase_ + 1;
  if (block_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(members_)) {
    block_->arrived.store(0, std::memory_order_relaxed);  // nobody looks at it before the phase below is released
    if (commit) block_->commits.store(commits_ + 1, std::memory_order_release);
    block_->phase.store(ending, std::memory_order_release);
    if (members_ > 1) base::futex_wake_all(block_->phase);
  } else if (Status status = wait_for_phase(ending); !status) {
    return status;
  }
  phase_ = ending;
  if (commit) ++commits_;
  return {};
}

Status Team::wait_for_phase(std::uint32_t phase) {
  if (static_cast<unsigned>(members_) <= std::thread::hardware_concurrency()) {
    for (int i = 0; i < kSpins; ++i) {
      if (ended(phase)) return {};
      pause_cpu();
    }
  }
  const base::Clock& clock = base::system_clock();
  std::int64_t wait_ns = kFirstWaitNs;
  std::int64_t next_liveness_ns = clock.now_ns() + kLivenessNs;
  while (!ended(phase)) {
    if (block_->broken.load(std::memory_order_acquire) != 0) {
      return Status(Code::peer_lost, "another process of this job on this node has died");
    }
    base::futex_wait(block_->phase, phase - 1, wait_ns);
    if (ended(phase)) break;
    hooks_.progress();
    wait_ns = std::min(wait_ns * 2, kLongestWaitNs);
    if (clock.now_ns() < next_liveness_ns) continue;
    next_liveness_ns = clock.now_ns() + kLivenessNs;
    if (!hooks_.members_alive() && !ended(phase)) {
      block_->broken.store(1, std::memory_order_release);
      base::futex_wake_all(block_->phase);
    }
  }
  return {};
}

Status Team::allgatherv(std::span<const std::byte> mine, Gathered& out) {
  constexpr std::size_t kChunk = sizeof(Mailbox::bytes);
  out.clear();
  partial_.assign(static_cast<std::size_t>(members_), {});
  for (std::size_t done = 0;; done += kChunk) {
    const std::uint32_t phase = phase_ + 1;
    Mailbox& box = mailbox(member_, phase);
    box.total_bytes = mine.size();
    if (done < mine.size()) std::memcpy(box.bytes, mine.data() + done, std::min(kChunk, mine.size() - done));
    if (Status status = barrier(); !status) return status;

    std::size_t longest = 0;
    for (int i = 0; i < members_; ++i) {
      const Mailbox& other = mailbox(i, phase);
      const std::size_t total = other.total_bytes;
      longest = std::max(longest, total);
      if (done >= total) continue;
      auto& part = partial_[static_cast<std::size_t>(i)];
      part.insert(part.end(), other.bytes, other.bytes + std::min(kChunk, total - done));
    }
    if (done + kChunk >= longest) break;
  }
  for (const auto& part : partial_) out.append(part);
  return {};
}

}  // namespace spillway::comm
