#pragma once

// The inside of Pattern, for src/extent only.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "extent/checked.h"
#include "extent/pattern.h"

namespace spillway::extent {

using NodePtr = std::shared_ptr<const Pattern::Node>;

// What is known of a part of a stream without looking inside it. Offsets are relative to the part's first
// stream byte, so the first piece begins at 0 (and `low` is 0 where pieces are sorted).
struct Shape {
  std::int64_t bytes = 0;
  std::int64_t pieces = 0;
  std::int64_t low = 0;         // the lowest byte
  std::int64_t high = 0;        // one past the highest byte
  std::int64_t last_begin = 0;  // of the last piece in stream order
  std::int64_t last_end = 0;
  bool sorted = true;
  bool sorted_disjoint = true;

  // Each returns false when a number does not fit; the Shape is then useless.
  static bool of_block(std::int64_t length, Shape& result);
  static bool of_repetition(const Shape& child, std::int64_t count, std::int64_t stride, Shape& result);
  // `child`, `offset` bytes from the begin of this part, is the next part of the stream.
  bool append(std::int64_t offset, const Shape& child);
};

// One level of the tree; never empty. The begin of a node is its first byte in stream order, so that a layout
// is the same node wherever it is displaced to.
struct Pattern::Node : Shape {
  enum class Kind : std::uint8_t {
    block,    // one piece of `bytes` bytes
    strided,  // `child`, `count` times, `stride` apart
    repeat,   // `child` at offsets[0 .. count)
    blocks,   // plain blocks of different lengths at offsets[]; block i is stream bytes [starts[i], starts[i +
              // 1])
    list,     // children[i] at offsets[i]; it begins at stream byte starts[i]
  };

  Kind kind = Kind::block;
  int depth = 1;           // levels, this one included
  std::int64_t count = 1;  // of children, at least 2 except for a block
  std::int64_t stride = 0;
  NodePtr child;
  std::vector<std::int64_t> offsets;  // offsets[0] is 0
  std::vector<std::int64_t> starts;   // count + 1 numbers
  std::vector<NodePtr> children;

  // Fills in Shape and depth from the rest. False when a number does not fit or the tree is too deep.
  bool derive();

  [[nodiscard]] bool is_block() const { return kind == Kind::block; }
  // Pieces of this level are plain blocks: there is nothing to descend into.
  [[nodiscard]] bool is_leaf() const {
    return kind == Kind::block || kind == Kind::blocks || (child != nullptr && child->is_block());
  }

  // A copy of this node `distance` bytes further continues its own strides.
  [[nodiscard]] bool continued_by(std::int64_t distance) const {
    const Checked period = Checked(stride) * count;
    return kind == Kind::strided && period.ok() && period.value() == distance;
  }

  // Of child i; not for a block.
  [[nodiscard]] std::int64_t child_offset(std::int64_t i) const {
    return kind == Kind::strided ? i * stride : offsets[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] std::int64_t child_start(std::int64_t i) const {
    return child != nullptr ? i * child->bytes : starts[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] std::int64_t child_bytes(std::int64_t i) const {
    return child != nullptr ? child->bytes : child_start(i + 1) - child_start(i);
  }
  // Null for a plain block of `blocks`.
  [[nodiscard]] const Node* child_node(std::int64_t i) const {
    return kind == Kind::list ? children[static_cast<std::size_t>(i)].get() : child.get();
  }
  // Which child holds the stream byte `position`.
  [[nodiscard]] std::int64_t child_at(std::int64_t position) const;
  // The last child that begins at or below `offset`, which is not negative. Requires sorted_disjoint.
  [[nodiscard]] std::int64_t child_below(std::int64_t offset) const;
};

// The same pieces in the same order by the same tree. Gives up, with false, when `budget` comparisons did not
// decide: subtrees may be shared in ways that make a full comparison exponential.
[[nodiscard]] bool same_layout(const Pattern::Node& a, const Pattern::Node& b, std::int64_t& budget);

}  // namespace spillway::extent
