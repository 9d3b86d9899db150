#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "extent/extent.h"

namespace spillway::extent {

// What a datatype selects, as a small tree instead of a list of pieces: the memory it takes depends on how the type was
// built, never on how many pieces it has. A vector of 10^8 doubles is one Strided node.
//
// A Pattern lists pieces (offset, length) in *stream order*, the order in which their bytes stand in a packed stream
// (the type map order of MPI-4.1 §5.1). Offsets are relative to an origin and may be negative or unsorted (memory types).
// Three kinds of node:
//   block    one piece
//   strided  a child repeated `count` times, `stride` bytes apart (stride may be negative)
//   list     children at given displacements (indexed and struct types), with prefix sums so that seeking is O(log n).
//            Lists of equal-sized plain blocks and of plain blocks are stored as arrays of numbers, not of nodes.
// Patterns are immutable and share subtrees; copying is cheap. Construction normalises: empty parts vanish, neighbours
// merge (a strided block whose stride is its length is a block; a list of one is its child), nested strides that continue
// each other fold into one. Two builds of the same layout need not be structurally equal, but have equal pieces.
//
// Threads: immutable, any.
class Pattern {
 public:
  Pattern();  // empty: no pieces

  static Pattern block(std::int64_t offset, std::int64_t length);
  static Pattern strided(const Pattern& child, std::int64_t count, std::int64_t stride);
  // children[i] displaced by displacements[i]; sizes are equal.
  static Pattern list(std::span<const std::int64_t> displacements, std::span<const Pattern> children);
  // The same child at many displacements (indexed_block).
  static Pattern list(std::span<const std::int64_t> displacements, const Pattern& child);
  // Plain blocks: lengths[i] bytes at displacements[i] (indexed types over contiguous elements).
  static Pattern blocks(std::span<const std::int64_t> displacements, std::span<const std::int64_t> lengths);
  [[nodiscard]] Pattern displaced(std::int64_t offset) const;

  [[nodiscard]] std::int64_t bytes() const;        // of data, gaps not counted
  [[nodiscard]] std::int64_t piece_count() const;  // after normalisation; neighbours across nodes may still touch
  [[nodiscard]] Extent bounds() const;             // from the lowest to the end of the highest byte; empty when bytes() == 0
  [[nodiscard]] bool contiguous() const;           // no pieces, or exactly one
  // Pieces have ascending offsets and do not overlap: what MPI asks of a filetype that is written through.
  // Exact for every pattern; computed once at construction.
  [[nodiscard]] bool sorted_disjoint() const;
  // Pieces have ascending offsets but may overlap: allowed in a filetype that is only read.
  [[nodiscard]] bool sorted() const;
  [[nodiscard]] std::size_t memory_bytes() const;  // held by the tree, shared subtrees counted once

  // For sorted_disjoint patterns. Number of data bytes at offsets below `offset`.  O(depth * log n).
  [[nodiscard]] std::int64_t bytes_below(std::int64_t offset) const;
  // Offset of the stream's byte number `position`, 0 <= position < bytes().  Any pattern.  O(depth * log n).
  [[nodiscard]] std::int64_t offset_of(std::int64_t position) const;

  // A compact self-contained byte form, and back. parse() accepts only what serialize() makes, with every count, offset and
  // total checked for overflow and for a depth limit; it never reads outside the span. Fails: corrupt.
  void serialize(std::vector<std::byte>& out) const;
  static Result<Pattern> parse(std::span<const std::byte> bytes);

  [[nodiscard]] std::string to_string() const;  // for messages and test failures

  struct Node;  // pattern_node.h
  [[nodiscard]] const Node* node() const { return node_.get(); }

 private:
  explicit Pattern(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

// Walks a Pattern tiled without end: tile k is displaced by k * tile_extent. (One tile only: limit the range.)
// Yields maximal strided runs that never exceed what was asked for, in stream order.
// Threads: one.  Memory: O(depth).
class PatternCursor {
 public:
  // Covers the stream bytes [position, position + length) of the tiling. The Pattern is kept alive by the cursor.
  PatternCursor(const Pattern& pattern, std::int64_t tile_extent, std::int64_t position, std::int64_t length);

  [[nodiscard]] std::int64_t remaining() const { return remaining_; }  // stream bytes not yet yielded
  // The next run; at most remaining() bytes. A run of one piece may be a part of a piece at the begin or end of the range.
  // Requires remaining() > 0.  Amortized O(1) for a regular pattern, O(log n) after a seek.
  StridedRun next();

 private:
  struct Level;
  Pattern pattern_;
  std::int64_t tile_extent_;
  std::int64_t tile_ = 0;
  std::int64_t remaining_;
  std::vector<Level> stack_;
};

}  // namespace spillway::extent
