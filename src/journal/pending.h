#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "extent/extent.h"
#include "journal/journal.h"

namespace spillway::journal {

// What is pending for a file anywhere on the node, whoever owns it (docs/adr/0004): looks into the journals of all its processes.
// A record that is valid is found, or its bytes are in the file already; never neither.
//
// Threads: any.  Blocks: only against another lookup of the same process.
class Pending {
 public:
  Pending(Node& node, Journal& own) : node_(node), own_(own) {}

  // Gives sink every pending byte of `file` inside `wanted`, oldest first where records overlap, so that what it keeps at the end
  // is newest. It may be given the same bytes more than once. Returns what was covered; everything else of `wanted` that was
  // written before the call is in the file by now.
  using Sink = std::function<void(std::int64_t file_offset, std::span<const std::byte> bytes)>;
  extent::ExtentList read(std::uint32_t file, const extent::ExtentList& wanted, const Sink& sink);

  // Whether any valid record, of any process, has bytes inside `range`.
  [[nodiscard]] bool overlaps(std::uint32_t file, const extent::Extent& range);

  // One past the last byte that is pending on the node, 0 when nothing is: no more than the file's size once all is drained.
  [[nodiscard]] std::int64_t end(std::uint32_t file);
  // What this process itself has pending, at most; empty when nothing is.
  [[nodiscard]] extent::Extent hull(std::uint32_t file);

  // Whether a valid record of another process, older than `sequence`, has bytes inside `bounds`: it must reach the file first.
  // For the background thread.
  [[nodiscard]] bool older_elsewhere(std::uint32_t file, std::uint64_t sequence, const extent::Extent& bounds);

 private:
  struct Piece {
    std::uint64_t sequence;
    extent::Extent extent;
    const std::byte* bytes;
    const RecordHeader* header;
  };
  void collect(std::uint32_t file, const extent::Extent& range, std::vector<Piece>& pieces);
  // Calls visit for the valid records of other processes that may touch `range`; stops when it returns false.
  void for_each_elsewhere(std::uint32_t file, const extent::Extent& range,
                          const std::function<bool(const RecordView&)>& visit);

  Node& node_;
  Journal& own_;
  base::Mutex mutex_;  // one application-side read section at a time
};

}  // namespace spillway::journal
