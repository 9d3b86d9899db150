#pragma once

// What coalesced_union computes with, for src/extent only.

#include <cstdint>
#include <vector>

#include "extent/pattern_node.h"

namespace spillway::extent {

// A part of one access, sorted and disjoint in itself. Every access, cut out of its tiling at any two bytes,
// is O(depth) of them: the end of a repetition, whole repetitions, the begin of one.
struct Term {
  enum class Kind : std::uint8_t {
    block,    // one piece
    strided,  // `node`, `count` times
    array,    // blocks [first, first + count) of `node`, which is a list of plain blocks
  };

  Kind kind = Kind::block;
  std::int64_t begin = 0;  // its first byte
  std::int64_t end = 0;    // one past its last
  std::int64_t pieces = 1;
  const Pattern::Node* node = nullptr;
  std::int64_t count = 1;
  std::int64_t stride = 0;
  std::int64_t first = 0;

  [[nodiscard]] Extent bounds() const { return {begin, end - begin}; }
  // Walks its pieces.
  [[nodiscard]] PatternWalk walk() const;
};
using Terms = std::vector<Term>;

// Adds the node that begins at `begin`, as terms. General lists become one term per child: their children are
// in memory anyway. Lists of plain blocks stay one term unless they are short.
void add_whole(const Pattern::Node& node, std::int64_t begin, Terms& terms);
// As add_whole, but only what lies inside `window`.
void add_part(const Pattern::Node& node, std::int64_t begin, const Extent& window, Terms& terms);
void add_part(const Term& term, const Extent& window, Terms& terms);

}  // namespace spillway::extent
