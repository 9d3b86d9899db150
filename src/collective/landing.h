#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "extent/extent.h"

namespace spillway::collective {

// Names a piece of memory on an aggregator's node, meaningful to every rank of that node, and the file range it is for.
struct LandingRef {
  std::uint32_t owner = 0;
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
  extent::Extent bounds;
};
static_assert(std::is_trivially_copyable_v<LandingRef>);

// Such a piece in this rank's address space: the bytes of `runs`, packed in file order.
struct LandingView {
  std::span<const extent::Extent> runs;
  std::byte* bytes = nullptr;

  [[nodiscard]] extent::Extent bounds() const { return {runs.front().offset, runs.back().end() - runs.front().offset}; }
};

// Where the bytes of a collective write land: memory of an aggregator that every rank of its node can place bytes into. What
// becomes of them then (the journal, or a write to the file before the call returns) is the implementation's.
// Threads: the rank's own.
class WriteLanding {
 public:
  virtual ~WriteLanding() = default;

  // Aggregator. Makes room for a leading part of what the cursor has left, at least one byte, in at most kRefsMax pieces, and moves
  // the cursor past it.  Blocks: until there is room.
  virtual Status accept(extent::RunCursor& cursor, std::vector<LandingRef>& refs) = 0;
  // Every rank of the owner's node, between the owner's accept() and the commit; it is going to touch about `bytes` bytes.
  virtual LandingView resolve(const LandingRef& ref, std::int64_t bytes) = 0;
  // Aggregator: all ranks have placed their bytes and the node's commit is through (keep), or the round failed somewhere.
  virtual Status finish(bool keep) = 0;
  // Whether finish(true) may fail, so that the ranks have to agree after it.
  [[nodiscard]] virtual bool finish_may_fail() const = 0;

  static constexpr std::size_t kRefsMax = 100;  // one mailbox of the node's team
};

// The same in the other direction.
class ReadLanding {
 public:
  virtual ~ReadLanding() = default;

  // Aggregator. Brings a leading part of what the cursor has left into memory, what is pending on this node included; bytes beyond
  // the end of the file are zeros.
  virtual Status fetch(extent::RunCursor& cursor, std::vector<LandingRef>& refs) = 0;
  virtual LandingView resolve(const LandingRef& ref, std::int64_t bytes) = 0;
  // Aggregator: every rank has its bytes.
  virtual void release() = 0;
};

}  // namespace spillway::collective
