#pragma once

#include <cstdint>
#include <span>

#include "extent/union.h"

namespace spillway::extent {

// From where on structure is used instead of walking pieces. Any values give the same result.
struct UnionTuning {
  // Groups of so few pieces, absolutely or per term, are merged piece by piece.
  std::int64_t few_pieces = 64;
  std::int64_t few_pieces_per_term = 4;
  // A common multiple of the strides makes a period when the group is at least so many periods long.
  std::int64_t periods_min = 8;
};

struct UnionResult {
  ExtentList extents;
  std::int64_t steps = 0;  // work done: terms looked at, pieces walked, extents put out; stands for time in tests
};

// coalesced_union(), with its work counted. For union.cc and tests.
[[nodiscard]] UnionResult solve_union(std::span<const TiledAccess> accesses, const Extent& range,
                                      const UnionTuning& tuning = {});

}  // namespace spillway::extent
