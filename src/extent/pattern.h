#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
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
//            Lists of one child at many displacements (8 bytes each) and of plain blocks (16 bytes each) are stored as
//            arrays of numbers, not of nodes.
// Patterns are immutable and share subtrees; copying is cheap. Construction normalises: empty parts vanish, neighbours
// merge (a strided block whose stride is its length is a block; a list of one is its child), nested strides that continue
// each other fold into one, a list of equal children at regular displacements becomes strided. Two builds of the same
// layout need not be structurally equal, but have equal pieces.
//
// Fails: a layout whose numbers do not fit into 63 bits, or that is nested deeper than kDepthMax after normalisation, is
// not representable(): it has no pieces, and whatever is built from it is not representable either. So a type of any shape
// can be built first and asked once.
// Threads: immutable, any.
class Pattern {
 public:
  static constexpr int kDepthMax = 64;

  Pattern() = default;  // empty: no pieces

  static Pattern block(std::int64_t offset, std::int64_t length);
  static Pattern strided(const Pattern& child, std::int64_t count, std::int64_t stride);
  // children[i] displaced by displacements[i]; sizes are equal.
  static Pattern list(std::span<const std::int64_t> displacements, std::span<const Pattern> children);
  // The same child at many displacements (indexed_block).
  static Pattern list(std::span<const std::int64_t> displacements, const Pattern& child);
  // Plain blocks: lengths[i] bytes at displacements[i] (indexed types over contiguous elements).
  static Pattern blocks(std::span<const std::int64_t> displacements, std::span<const std::int64_t> lengths);
  [[nodiscard]] Pattern displaced(std::int64_t offset) const;

  [[nodiscard]] bool representable() const { return representable_; }
  [[nodiscard]] bool empty() const { return node_ == nullptr; }
  [[nodiscard]] std::int64_t bytes() const;        // of data, gaps not counted
  [[nodiscard]] std::int64_t piece_count() const;  // after normalisation; neighbours across nodes may still touch
  [[nodiscard]] Extent bounds() const;    // from the lowest to the end of the highest byte; empty when bytes() == 0
  [[nodiscard]] bool contiguous() const;  // no pieces, or exactly one
  // Pieces have ascending offsets and do not overlap: what MPI asks of a filetype that is written through.
  // Exact for every pattern, because only neighbours in the stream decide; computed once at construction.
  [[nodiscard]] bool sorted_disjoint() const;
  // Each piece begins at or after the begin of the one before it, but may overlap it: allowed in a filetype that is only
  // read. Exact in terms of the pieces as they are listed, after merging.
  [[nodiscard]] bool sorted() const;
  [[nodiscard]] std::size_t memory_bytes() const;  // held by the tree, shared subtrees counted once

  // For sorted_disjoint patterns. Number of data bytes at offsets below `offset`.  O(depth * log n).
  [[nodiscard]] std::int64_t bytes_below(std::int64_t offset) const;
  // Offset of the stream's byte number `position`, 0 <= position < bytes().  Any pattern.  O(depth * log n).
  [[nodiscard]] std::int64_t offset_of(std::int64_t position) const;

  // A compact self-contained byte form (pattern_wire.cc), and back. parse() accepts only complete and well-formed trees,
  // with every count, offset and total checked for overflow and for kDepthMax; it never reads outside the span and
  // allocates in proportion to it. Requires representable().  Fails: corrupt.
  void serialize(std::vector<std::byte>& out) const;
  static Result<Pattern> parse(std::span<const std::byte> bytes);

  // For messages and test failures: "1000 x 64 of [0, 8)". Long lists and deep trees are cut short.
  [[nodiscard]] std::string to_string() const;

  struct Node;  // pattern_node.h
  // The tree without its place, and its place: the offset of stream byte 0. Null when empty.
  [[nodiscard]] const Node* node() const { return node_.get(); }
  [[nodiscard]] std::int64_t first_offset() const { return offset_; }

 private:
  Pattern(std::shared_ptr<const Node> node, std::int64_t offset) : node_(std::move(node)), offset_(offset) {}
  static Pattern unrepresentable();
  // Derives what is known of the node; unrepresentable if that does not fit.
  static Pattern from_node(Node node, std::int64_t offset);
  static Pattern from_offsets(Pattern child, std::vector<std::int64_t> offsets);
  static Pattern from_blocks(std::vector<std::int64_t> offsets, std::vector<std::int64_t> lengths);
  static Pattern from_nodes(std::vector<std::int64_t> offsets, std::vector<std::shared_ptr<const Node>> nodes);

  std::shared_ptr<const Node> node_;
  std::int64_t offset_ = 0;
  bool representable_ = true;
};

// Walks repetitions of a node: what PatternCursor does, without owning the tree. For src/extent.
// Threads: one.  Memory: O(depth), allocated by the constructor.
class PatternWalk {
 public:
  // Stream bytes [position, position + length) of `count` copies of `node`, the first at `base`, `stride` apart. `node` may
  // be null if length is 0.
  PatternWalk(const Pattern::Node* node, std::int64_t base, std::int64_t count, std::int64_t stride,
              std::int64_t position, std::int64_t length);

  [[nodiscard]] std::int64_t remaining() const { return remaining_; }
  StridedRun next();

 private:
  enum class Form : std::uint8_t { step, list, step_leaf, repeat_leaf, blocks_leaf };
  // Where the walk stands in one node. The leaf forms yield runs; the others only lead to the levels above them.
  struct Level {
    const Pattern::Node* node;  // step: the child; others: the node with the arrays
    std::int64_t base;
    std::int64_t index;
    std::int64_t count;
    std::int64_t stride;
    std::int64_t length;  // of each piece, for step_leaf and repeat_leaf
    Form form;
  };

  void descend(const Pattern::Node* node, std::int64_t base, std::int64_t position);
  void descend_into_child(std::int64_t position);
  void advance();

  std::int64_t remaining_;
  std::int64_t skip_ = 0;  // bytes of the next piece that lie before the range
  std::size_t depth_ = 0;  // levels in use
  std::vector<Level> levels_;
};

// Walks a Pattern tiled without end: tile k is displaced by k * tile_extent. (One tile only: limit the range.)
// Yields maximal strided runs that never exceed what was asked for, in stream order.
// Threads: one.  Memory: O(depth), allocated by the constructor.
class PatternCursor {
 public:
  // Covers the stream bytes [position, position + length) of the tiling, whose offsets fit into 63 bits. The Pattern is kept
  // alive by the cursor.
  PatternCursor(const Pattern& pattern, std::int64_t tile_extent, std::int64_t position, std::int64_t length);

  [[nodiscard]] std::int64_t remaining() const { return walk_.remaining(); }  // stream bytes not yet yielded
  // The next run; at most remaining() bytes. A run of one piece may be a part of a piece at the begin or end of the range.
  // Requires remaining() > 0.  Amortized O(1) for a regular pattern, O(log n) after a seek.
  StridedRun next() { return walk_.next(); }

 private:
  Pattern pattern_;
  PatternWalk walk_;
};

}  // namespace spillway::extent
