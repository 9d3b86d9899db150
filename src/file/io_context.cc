#include "file/io_context.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace spillway::file {
namespace {

constexpr std::int64_t kWaitNs = 1'000'000;
constexpr int kTurnsBetweenLivenessChecks = 1000;

}  // namespace

Result<journal::Journal::Appended> append_waiting(IoContext& context, extent::RunCursor& cursor,
                                                  const journal::Journal::Append& what) {
  journal::Journal& journal = context.runtime.journal();
  Result<journal::Journal::Appended> appended = journal.append(cursor, what);
  if (appended.ok() || appended.status().code() != Code::would_block) return appended;
  const TraceScope scope(context.runtime, "wait_space", context.target->path);
  for (;;) {
    if (what.file != journal::kNone) {
      if (Status stuck = context.runtime.drain().all_stuck(what.file); !stuck) {
        return Status(stuck.code(), "the buffer is full of bytes that could not be written: " + stuck.what());
      }
    }
    journal.wait_for_space(kWaitNs);
    appended = journal.append(cursor, what);
    if (appended.ok() || appended.status().code() != Code::would_block) return appended;
    context.comm.progress();
  }
}

Status settle(IoContext& context, const extent::Extent& range) {
  journal::Node& node = context.runtime.node();
  const journal::FileSlot& slot = node.file(context.slot());
  for (int turn = 1;; ++turn) {
    const std::uint32_t seen = node.retired_event();
    if (!context.runtime.pending().overlaps(context.slot(), range)) return {};
    if (slot.stuck_owners.load(std::memory_order_relaxed) > 0) {
      const journal::PackedError error = slot.error.load(std::memory_order_acquire);
      return Status(static_cast<Code>(error.code), "an earlier write to the same place could not be completed");
    }
    if (turn % kTurnsBetweenLivenessChecks == 0 && node.has_dead_owner(context.slot())) {
      // Recovery will write what that process left; a newer write beside it would be overwritten then.
      return Status(Code::peer_lost, "another process died with an older write to the same place");
    }
    node.wait_retired(seen, kWaitNs);
    context.comm.progress();
  }
}

Status read_span(IoContext& context, const extent::Extent& range, std::byte* buffer) {
  if (range.empty()) return {};
  const extent::ExtentList wanted = extent::ExtentList::from_unsorted({range});
  // What is pending first, then the file for the rest: what is not found pending any more is in the file by then.
  const extent::ExtentList covered = context.runtime.pending().read(
      context.slot(), wanted, [&](std::int64_t offset, std::span<const std::byte> bytes) {
        std::memcpy(buffer + (offset - range.offset), bytes.data(), bytes.size());
      });
  for (const extent::Extent& rest : wanted.without(covered)) {
    std::byte* into = buffer + (rest.offset - range.offset);
    Result<std::int64_t> got = context.storage().read(rest.offset, {into, static_cast<std::size_t>(rest.length)});
    if (!got) return got.status();
    std::memset(into + *got, 0, static_cast<std::size_t>(rest.length - *got));
  }
  return {};
}

Status read_runs(IoContext& context, std::span<const extent::Extent> runs, std::byte* packed) {
  std::vector<std::byte> window;
  for (std::size_t i = 0; i < runs.size();) {
    std::size_t next = i + 1;
    std::int64_t end = runs[i].end();
    while (next < runs.size() && runs[next].offset - end <= kSieveGapBytes &&
           runs[next].end() - runs[i].offset <= kSieveWindowBytes) {
      end = runs[next].end();
      ++next;
    }
    if (next == i + 1) {
      if (Status status = read_span(context, runs[i], packed); !status) return status;
      packed += runs[i].length;
    } else {
      const extent::Extent hull{runs[i].offset, end - runs[i].offset};
      window.resize(static_cast<std::size_t>(hull.length));
      if (Status status = read_span(context, hull, window.data()); !status) return status;
      for (std::size_t k = i; k < next; ++k) {
        std::memcpy(packed, window.data() + (runs[k].offset - hull.offset), static_cast<std::size_t>(runs[k].length));
        packed += runs[k].length;
      }
    }
    i = next;
  }
  return {};
}

}  // namespace spillway::file
