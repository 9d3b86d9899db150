#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "extent/pattern.h"
#include "extent/union.h"

namespace spillway::view {

// An MPI file view (MPI-4.1 §14.3): the file as one rank sees it, a stream of etypes. *View space* counts data bytes only;
// *file space* counts all bytes of the file.
//
// The filetype is given as a Pattern with its MPI extent (ub - lb) and tiles the file from the displacement on.
// Threads: immutable, any. Copying is cheap.
class FileView {
 public:
  // Bytes from offset 0: the view of a file that was just opened.
  FileView();

  // Requires displacement >= 0, etype_bytes > 0, filetype.bytes() a multiple of it, offsets in the filetype >= 0,
  // filetype_extent > 0, pieces sorted and inside the tile order; `writable` also asks for disjoint pieces and tiles.
  // A filetype without bytes is legal, whatever its extent, and common: ranks without data of their own use it. Such a view
  // holds nothing, and only accesses of length 0 are valid.
  // Fails: bad_argument (displacement), bad_type (anything about the types), naming the rule of MPI-4.1 §14.3 that is broken.
  static Result<FileView> make(std::int64_t displacement, std::int64_t etype_bytes, const extent::Pattern& filetype,
                               std::int64_t filetype_extent, bool writable);

  [[nodiscard]] std::int64_t displacement() const { return displacement_; }
  [[nodiscard]] std::int64_t etype_bytes() const { return etype_bytes_; }
  [[nodiscard]] const extent::Pattern& filetype() const { return filetype_; }
  [[nodiscard]] std::int64_t filetype_extent() const { return filetype_extent_; }
  // View space and file space differ by the displacement only.
  [[nodiscard]] bool contiguous() const { return contiguous_; }
  // Pieces and tiles ascend without overlap, so that bytes_below() is defined.
  [[nodiscard]] bool sorted_disjoint() const { return sorted_disjoint_; }

  // File offset of view byte `position` (>= 0). What lies beyond the largest offset is reported as that offset, so that
  // the caller's check of the file size limit catches it.
  [[nodiscard]] std::int64_t file_offset(std::int64_t position) const;
  // How many view bytes lie below file offset `offset`: where a seek to the end, or a file domain, begins in view space.
  // Requires sorted_disjoint().
  [[nodiscard]] std::int64_t bytes_below(std::int64_t offset) const;
  // From the first to the end of the last file byte of view bytes [position, position + length); empty when length is 0.
  // Ends at the largest offset if the access reaches beyond it; cursor() and access() must then not be asked.
  [[nodiscard]] extent::Extent bounds(std::int64_t position, std::int64_t length) const;
  // Strided runs of view bytes [position, position + length), offsets in file space without the displacement added:
  // add displacement() to each run's offset.
  [[nodiscard]] extent::PatternCursor cursor(std::int64_t position, std::int64_t length) const;
  // The same bytes for coalesced_union().  Requires sorted_disjoint().
  [[nodiscard]] extent::TiledAccess access(std::int64_t position, std::int64_t length) const;

  // A compact byte form for other ranks, and back. Fails: corrupt.
  void serialize(std::vector<std::byte>& out) const;
  static Result<FileView> parse(std::span<const std::byte> bytes);

 private:
  std::int64_t displacement_ = 0;
  std::int64_t etype_bytes_ = 1;
  std::int64_t filetype_extent_ = 1;
  bool contiguous_ = true;
  bool sorted_disjoint_ = true;
  extent::Pattern filetype_;
};

// The part of a rank's access that falls into a file range: again a range of view space.
// Requires view.sorted_disjoint().
struct ViewRange {
  std::int64_t position = 0;
  std::int64_t length = 0;
};
[[nodiscard]] ViewRange clip(const FileView& view, const ViewRange& access, const extent::Extent& range);

// Memory that a rank reads into or writes from: `pattern` tiled `tile_extent` apart from `base`; the stream bytes of the
// access in order. `count` tiles hold count * pattern.bytes() bytes.
struct MemoryLayout {
  std::byte* base = nullptr;
  extent::Pattern pattern;
  std::int64_t tile_extent = 0;

  // One contiguous buffer.
  static MemoryLayout contiguous_bytes(void* base, std::int64_t bytes);
  [[nodiscard]] bool contiguous() const;  // stream byte i is base[pattern offset + i]
};

// A move of count * length bytes between memory and file addresses that advance by their strides.
struct Move {
  std::byte* memory;
  std::int64_t memory_stride;
  std::int64_t file_offset;
  std::int64_t file_stride;
  std::int64_t length;
  std::int64_t count;
};

// Pairs the memory stream with the file stream: yields moves in view order until `length` bytes are covered. Stream byte 0 of
// `memory` corresponds to view byte `origin`; the range to walk is [range.position, range.position + range.length).
// Threads: one.
class MoveCursor {
 public:
  MoveCursor(const FileView& view, const MemoryLayout& memory, std::int64_t origin, const ViewRange& range);
  [[nodiscard]] bool done() const { return remaining_ == 0; }
  // The next move, as large as both sides' regularity allows: pieces of one side that fit into a piece of the other go
  // together. Requires !done().
  Move next();

 private:
  // One of the two streams: its runs, and how much of the first piece of the present run is used up.
  struct Side {
    extent::PatternCursor cursor;
    extent::StridedRun run{0, 0, 0, 0};
    std::int64_t used = 0;

    void refill();
    // What is left of the first piece, and how many pieces of that length follow each other from there.
    [[nodiscard]] std::int64_t length() const { return run.length - used; }
    [[nodiscard]] std::int64_t count() const { return used > 0 ? 1 : run.count; }
    // Uses up `count` times `length` bytes: whole pieces if length is length(), else parts of the first one. Returns the
    // offset where they begin.
    std::int64_t take(std::int64_t length, std::int64_t count);
  };

  Side file_;
  Side memory_;
  std::int64_t displacement_;
  std::byte* base_;
  std::int64_t remaining_;
};

}  // namespace spillway::view
