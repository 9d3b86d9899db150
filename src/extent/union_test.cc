#include "extent/union.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "extent/test_patterns.h"
#include "extent/union_solver.h"

namespace spillway::extent {
namespace {

// By every byte of every access.
ExtentList naive_union(std::span<const TiledAccess> accesses, const Extent& range) {
  std::vector<Extent> extents;
  for (const TiledAccess& access : accesses) {
    for (std::int64_t i = access.position; i < access.position + access.length; ++i) {
      const std::int64_t tile = i / access.pattern.bytes() * access.tile_extent;
      const std::int64_t offset = access.displacement + tile + access.pattern.offset_of(i % access.pattern.bytes());
      extents.push_back(intersection({offset, 1}, range));
    }
  }
  return ExtentList::from_unsorted(extents);
}

Extent hull_of(std::span<const TiledAccess> accesses) {
  return naive_union(accesses, {-(std::int64_t{1} << 60), std::int64_t{1} << 61}).bounds();
}

// Many ranges of one set of accesses: all of it, parts cut anywhere, nothing.
void expect_union(Random& random, std::span<const TiledAccess> accesses) {
  const Extent hull = hull_of(accesses);
  for (int i = 0; i < 4; ++i) {
    Extent range{hull.offset - 5, hull.length + 10};
    if (i > 0) range.offset += random.between(0, hull.length);
    if (i > 0) range.length = random.between(0, hull.length);
    EXPECT_EQ(coalesced_union(accesses, range), naive_union(accesses, range)) << range.offset << " + " << range.length;
  }
}

// Any part of the stream of the first tiles.
void clip_at_random(Random& random, TiledAccess& access, std::int64_t tiles) {
  const std::int64_t bytes = access.pattern.bytes() * tiles;
  if (bytes == 0) return;
  access.position = random.one_in(3) ? 0 : random.between(0, bytes - 1);
  access.length = random.one_in(3) ? bytes - access.position : random.between(0, bytes - access.position);
}

std::string text_of(std::span<const TiledAccess> accesses) {
  std::string text;
  for (const TiledAccess& access : accesses) {
    text += access.pattern.to_string() + " at " + std::to_string(access.displacement) + " every " +
            std::to_string(access.tile_extent) + ", stream " + std::to_string(access.position) + " + " +
            std::to_string(access.length) + "\n";
  }
  return text;
}

TEST(CoalescedUnion, AgreesWithBytesOnAnyPatterns) {
  for_random_rounds(1500, [](Random& random) {
    const std::int64_t base = random.one_in(2) ? 0 : std::int64_t{1} << 42;
    std::vector<TiledAccess> accesses(static_cast<std::size_t>(random.between(1, 6)));
    const Sample shared = random_sample(random, Order::sorted_disjoint);
    for (TiledAccess& access : accesses) {
      const Sample sample = random.one_in(2) ? shared : random_sample(random, Order::sorted_disjoint);
      access.pattern = sample.pattern;
      access.displacement = base + random.between(0, 100);
      access.tile_extent = access.pattern.bounds().length + random.between(0, 20);
      clip_at_random(random, access, 3);
    }
    SCOPED_TRACE(text_of(accesses));
    expect_union(random, accesses);
  });
}

// Patterns as parallel programs have them. `ranks` accesses that share the file; together regular, each cut
// anywhere.
class Family {
 public:
  explicit Family(Random& random) : random_(random) {}

  std::vector<TiledAccess> make() {
    switch (random_.between(0, 4)) {
      case 0:
        return interleaved();
      case 1:
        return subarrays(2);
      case 2:
        return subarrays(3);
      case 3:
        return diagonal_cells();
      default:
        return mixed_strides();
    }
  }

 private:
  static Pattern repeated(const Pattern& child, std::int64_t count, std::int64_t stride) {
    return Pattern::strided(child, count, stride);
  }

  // Rank r owns piece r of every `ranks` pieces, or some of the pieces stay unowned.
  std::vector<TiledAccess> interleaved() {
    const std::int64_t ranks = random_.between(1, 7);
    const std::int64_t piece = random_.between(1, 9);
    const std::int64_t period = ranks * piece + (random_.one_in(2) ? 0 : random_.between(0, 20));
    std::vector<TiledAccess> accesses;
    for (std::int64_t r = 0; r < ranks; ++r) {
      const bool tiled = random_.one_in(2);
      const std::int64_t start = random_.one_in(4) ? random_.between(0, 5) * period : 0;
      const Pattern block = Pattern::block(0, piece);
      add(accesses, tiled ? block : repeated(block, 40, period), start + r * piece, tiled ? period : 40 * period,
          tiled ? random_.between(1, 60) : random_.between(1, 2));
    }
    return accesses;
  }

  // One block of an array per rank, by dimension; blocks of one grid line have one size. Overlapping by a
  // halo, if any.
  std::vector<TiledAccess> subarrays(int dimensions) {
    const std::int64_t halo = random_.one_in(2) ? 0 : random_.between(0, 2);
    std::vector<std::vector<std::int64_t>> cuts;
    std::int64_t array_bytes = random_.between(1, 4);
    for (int d = 0; d < dimensions; ++d) {
      cuts.push_back({0});
      for (std::int64_t n = random_.between(1, 3); n > 0; --n)
        cuts[d].push_back(cuts[d].back() + random_.between(1, 6));
    }
    std::vector<std::int64_t> strides = {array_bytes};
    for (int d = 0; d < dimensions; ++d) strides.push_back(strides.back() * cuts[d].back());
    std::vector<TiledAccess> accesses;
    std::vector<std::size_t> at(static_cast<std::size_t>(dimensions), 0);
    const std::int64_t tiles = random_.between(1, 2);
    for (int d = 0; d < dimensions;) {
      Pattern pattern = Pattern::block(0, array_bytes);
      for (int i = 0; i < dimensions; ++i) {
        const std::int64_t low = std::max<std::int64_t>(0, cuts[i][at[i]] - halo);
        const std::int64_t high = std::min(cuts[i].back(), cuts[i][at[i] + 1] + halo);
        pattern = repeated(pattern, high - low, strides[i]).displaced(low * strides[i]);
      }
      if (!random_.one_in(8)) add(accesses, pattern, 0, strides.back(), tiles);
      for (d = 0; d < dimensions && ++at[d] + 1 == cuts[d].size(); ++d) at[d] = 0;
    }
    return accesses;
  }

  // Block-tridiagonal multi-partition: every rank has one cell in each plane of cells, along a diagonal.
  std::vector<TiledAccess> diagonal_cells() {
    const std::int64_t n = random_.between(2, 3);
    const std::int64_t cell = random_.between(1, 4);
    const std::int64_t row = n * cell * 2;
    const std::int64_t plane = row * n * cell;
    const Pattern block = repeated(repeated(Pattern::block(0, cell * 2), cell, row), cell, plane);
    std::vector<TiledAccess> accesses;
    for (std::int64_t r = 0; r < n * n; ++r) {
      std::vector<std::int64_t> offsets;
      for (std::int64_t z = 0; z < n; ++z) {
        const std::int64_t y = (r / n + z) % n;
        const std::int64_t x = (r + z) % n;
        offsets.push_back(z * cell * plane + y * cell * row + x * cell * 2);
      }
      add(accesses, Pattern::list(offsets, std::vector<Pattern>(offsets.size(), block)), 0, plane * n * cell, 1);
    }
    return accesses;
  }

  // Strides that are multiples of each other, or not, together with lists.
  std::vector<TiledAccess> mixed_strides() {
    const std::int64_t unit = random_.between(2, 12);
    std::vector<TiledAccess> accesses;
    for (std::int64_t r = random_.between(2, 6); r > 0; --r) {
      const std::int64_t stride = random_.one_in(4) ? random_.between(2, 60) : unit * random_.between(1, 4);
      Pattern pattern = Pattern::block(0, random_.between(1, stride));
      std::int64_t extent = stride;
      if (random_.one_in(3)) {
        pattern = repeated(pattern, random_.between(2, 6), stride);
        extent = pattern.bounds().length + random_.between(0, 3) * unit;
      } else if (random_.one_in(3)) {
        std::vector<std::int64_t> offsets = {0};
        for (int i = 0; i < 20; ++i) offsets.push_back(offsets.back() + random_.between(2, 9));
        pattern = Pattern::list(offsets, Pattern::block(0, 2));
        extent = pattern.bounds().length + random_.between(0, 9);
      }
      add(accesses, pattern, random_.between(0, 200), extent, random_.between(1, 60));
    }
    return accesses;
  }

  void add(std::vector<TiledAccess>& accesses, const Pattern& pattern, std::int64_t displacement,
           std::int64_t tile_extent, std::int64_t tiles) {
    accesses.push_back({pattern, displacement, tile_extent, 0, tiles * pattern.bytes()});
    if (random_.one_in(3)) clip_at_random(random_, accesses.back(), tiles);
  }

  Random& random_;
};

TEST(CoalescedUnion, AgreesWithBytesOnPatternsOfParallelPrograms) {
  for_random_rounds(1500, [](Random& random) {
    const std::vector<TiledAccess> accesses = Family(random).make();
    SCOPED_TRACE(text_of(accesses));
    expect_union(random, accesses);
  });
}

TEST(CoalescedUnion, AgreesWithBytesInEveryPhase) {
  const UnionTuning eager{.few_pieces = 0, .few_pieces_per_term = 1};
  constexpr std::int64_t kPeriod = 6;
  constexpr std::int64_t kTiles = 20;
  for (std::int64_t length = 1; length <= kPeriod; ++length) {
    for (std::int64_t begin = 0; begin < 3 * kPeriod; ++begin) {
      for (std::int64_t tiles = 1; tiles < 6; ++tiles) {
        const std::vector<TiledAccess> accesses = {
            // What begins first decides where cells begin; it does so alone, or every cell's first byte would
            // be there.
            {Pattern::block(0, 3), 0, kPeriod, 0, 3},
            {Pattern::block(0, 2), 1, kPeriod, 0, 2 * kTiles},
            {Pattern::block(0, length), begin, kPeriod, 0, length * tiles},
            {Pattern::block(0, kPeriod - length), begin + length, kPeriod, 0, (kPeriod - length) * (tiles + 3)}};
        const Extent all{0, 2 * kPeriod * kTiles};
        EXPECT_EQ(solve_union(accesses, all, eager).extents, naive_union(accesses, all)) << text_of(accesses);
      }
    }
  }
}

TEST(CoalescedUnion, OfNothingIsEmpty) {
  EXPECT_TRUE(coalesced_union({}, {0, 100}).empty());
  const std::vector<TiledAccess> accesses = {{Pattern(), 0, 8, 0, 0}, {Pattern::block(0, 8), 0, 8, 4, 0}};
  EXPECT_TRUE(coalesced_union(accesses, {0, 100}).empty());
}

TEST(CoalescedUnion, ReachesTheLargestOffset) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> offsets = {0, kLargest / 2};
  // The second tile begins inside the file's last byte range, and its second piece lies beyond it.
  const std::vector<TiledAccess> accesses = {
      {Pattern::list(offsets, Pattern::block(0, 8)), 100, kLargest / 2 + 100, 4, 20}};
  EXPECT_EQ(coalesced_union(accesses, {0, kLargest}),
            ExtentList::from_unsorted({{104, 4}, {100 + kLargest / 2, 8}, {200 + kLargest / 2, 8}}));
}

std::int64_t steps_of(std::span<const TiledAccess> accesses, const Extent& range, std::size_t expected_extents) {
  const UnionResult result = solve_union(accesses, range);
  EXPECT_EQ(result.extents.size(), expected_extents);
  return result.steps;
}

TEST(CoalescedUnionCost, FollowsTheStructureOfInterleavedVectors) {
  constexpr std::int64_t kRanks = 1024;
  constexpr std::int64_t kPieces = 100'000'000;
  std::vector<TiledAccess> accesses;
  for (std::int64_t r = 0; r < kRanks; ++r) {
    // Some as one vector, some as a small tile; cut inside a piece at either end.
    const std::int64_t period = kRanks * 8;
    const Pattern block = Pattern::block(0, 8);
    const Pattern pattern = r % 2 == 0 ? block : Pattern::strided(block, 1000, period);
    accesses.push_back({pattern, r * 8, r % 2 == 0 ? period : 1000 * period, 3, kPieces / kRanks * 8});
  }
  const Extent all{0, 2 * kPieces * 8};
  // Three bytes are missing from every head: the first period is full of holes, and so is the last one.
  EXPECT_LT(steps_of(accesses, all, 2 * kRanks - 1), 40 * kRanks);
  EXPECT_LT(steps_of(accesses, {kRanks * 8 * 10 + 3, kPieces * 4}, 1), 40 * kRanks);
}

TEST(CoalescedUnionCost, FollowsTheStructureOfBlocksOfA3dArray) {
  // 8 x 8 x 8 ranks, each with 128^3 values of 8 bytes: 512 x 16384 rows of 1 KiB.
  constexpr std::int64_t kSide = 8;
  constexpr std::int64_t kBlock = 128;
  constexpr std::int64_t kRow = kSide * kBlock * 8;
  constexpr std::int64_t kPlane = kRow * kSide * kBlock;
  constexpr std::int64_t kArray = kPlane * kSide * kBlock;
  const Pattern cube = Pattern::strided(Pattern::strided(Pattern::block(0, kBlock * 8), kBlock, kRow), kBlock, kPlane);
  std::vector<TiledAccess> accesses;
  for (std::int64_t z = 0; z < kSide; ++z) {
    for (std::int64_t y = 0; y < kSide; ++y) {
      for (std::int64_t x = 0; x < kSide; ++x) {
        const std::int64_t displacement = kBlock * (z * kPlane + y * kRow + x * 8);
        accesses.push_back({cube, displacement, kArray, 0, cube.bytes()});
      }
    }
  }
  EXPECT_LT(steps_of(accesses, {0, kArray}, 1), 100 * 512);
  // An aggregator's file domain begins and ends in the middle of a row.
  EXPECT_LT(steps_of(accesses, {kArray / 3 + 5, kArray / 7}, 1), 100 * 512);
}

TEST(CoalescedUnionCost, WalksIrregularAccessesOnly) {
  constexpr std::int64_t kPieces = 10'000'000;
  const Pattern block = Pattern::block(0, 8);
  std::vector<TiledAccess> accesses = {{block, 0, 16, 0, 8 * kPieces}, {block, 8, 16, 0, 8 * kPieces}};
  std::vector<std::int64_t> offsets = {0};
  for (std::int64_t i = 1; i < 1000; ++i) offsets.push_back(offsets.back() + 4000 + i * i % 97);
  accesses.push_back({Pattern::list(offsets, block), 0, 5'000'000, 0, 8000});
  accesses.push_back({block, 3, 1009, 0, 80'000});
  EXPECT_LT(steps_of(accesses, {0, 16 * kPieces}, 1), 1000);

  // The regular ones leave holes, some of which the irregular one fills or cuts. Two steps per hole, not five
  // pieces.
  constexpr std::int64_t kHoles = kPieces / 100;
  accesses = {{block, 0, 72, 0, 8 * kHoles}, {block, 8, 72, 0, 8 * kHoles}, {block, 3, 1009, 0, 8 * kHoles / 20}};
  for (std::int64_t r = 2; r < 8; ++r) accesses.push_back({block, 8 * r, 72, 0, 8 * kHoles});
  const Extent all{0, 72 * kHoles};
  const UnionResult by_pieces = solve_union(accesses, all, {.few_pieces = 8 * kHoles + kHoles / 20});
  const UnionResult by_structure = solve_union(accesses, all);
  EXPECT_EQ(by_structure.extents, by_pieces.extents);
  EXPECT_GT(by_pieces.steps, 8 * kHoles);
  EXPECT_LT(by_structure.steps, 2 * kHoles);
}

TEST(CoalescedUnionCost, ReplicatesWhatIsSparse) {
  constexpr std::int64_t kPieces = 100'000;
  const Pattern block = Pattern::block(0, 8);
  const std::vector<TiledAccess> accesses = {{block, 0, 100, 0, 8 * kPieces}, {block, 8, 100, 0, 8 * kPieces}};
  EXPECT_LT(steps_of(accesses, {0, 100 * kPieces}, kPieces), 2 * kPieces);
}

}  // namespace
}  // namespace spillway::extent
