#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "comm/communicator.h"
#include "drain/drain.h"
#include "extent/extent.h"
#include "file/runtime.h"

namespace spillway::file {

// What the parts of one open file share: who, where, and how bytes are to leave.
struct IoContext {
  Runtime& runtime;
  comm::Communicator& comm;
  std::shared_ptr<drain::Target> target;
  std::uint64_t commit_word = 0;  // in the node file: where the team of the file's ranks counts its commits
  bool staging = false;           // collective writes go through the journal
  bool staging_alone = false;     // so do independent ones: all that could look are on this node

  [[nodiscard]] std::uint32_t slot() const { return target->slot; }
  [[nodiscard]] storage::File& storage() const { return *target->file; }
  [[nodiscard]] std::function<void()> progress() const {
    return [this] { comm.progress(); };
  }
};

// Appends to the journal, waiting for space as long as some can come. Fails: with the failure behind which everything is stuck.
Result<journal::Journal::Appended> append_waiting(IoContext& context, extent::RunCursor& cursor,
                                                  const journal::Journal::Append& what);

// Waits until nothing that is pending on the node lies inside `range`: what is written to the file itself must come after it.
Status settle(IoContext& context, const extent::Extent& range);

// Reads a file range as a program sees it: pending bytes where there are any, the file elsewhere, zeros beyond its end.
Status read_span(IoContext& context, const extent::Extent& range, std::byte* buffer);
// The same for the bytes of `runs`, packed. Runs that lie close together are read as one.
Status read_runs(IoContext& context, std::span<const extent::Extent> runs, std::byte* packed);

// Gaps up to this size are read, and thrown away, rather than skipped by another request (data sieving).
inline constexpr std::int64_t kSieveGapBytes = 32 * 1024;
inline constexpr std::int64_t kSieveWindowBytes = 4 << 20;

}  // namespace spillway::file
