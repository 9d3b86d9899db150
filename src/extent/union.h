#pragma once

#include <cstdint>
#include <span>

#include "extent/extent.h"
#include "extent/pattern.h"

namespace spillway::extent {

// One participant's access: the stream bytes [position, position + length) of `pattern` tiled every `tile_extent` bytes
// and displaced by `displacement`. The pattern is sorted_disjoint, its tiles do not overlap, and the bytes accessed lie at
// offsets below 2^63. Different accesses may overlap.
struct TiledAccess {
  Pattern pattern;
  std::int64_t displacement = 0;
  std::int64_t tile_extent = 0;
  std::int64_t position = 0;
  std::int64_t length = 0;
};

// The file bytes that any of the accesses touches inside `range`, coalesced. This is what an aggregator needs in order to
// know whether the pieces of all ranks leave holes in its file domain, and where.
//
// Cost: proportional to the *structure* where the accesses are regular and interlock (interleaved vectors, blocks of a
// multi-dimensional array: nested patterns of equal stride are compared level by level, one period standing for all), and
// O(pieces * log accesses) only where nothing regular is found. A dense result of 10^8 interleaved 8-byte pieces costs some
// steps per access. A result with many holes is as long as it has extents.
[[nodiscard]] ExtentList coalesced_union(std::span<const TiledAccess> accesses, const Extent& range);

}  // namespace spillway::extent
