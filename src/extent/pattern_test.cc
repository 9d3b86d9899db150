#include "extent/pattern.h"

#include <gtest/gtest.h>

#include <limits>

#include "extent/test_patterns.h"

namespace spillway::extent {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::vector<std::int64_t> walked(PatternCursor cursor) {
  std::vector<std::int64_t> bytes;
  while (cursor.remaining() > 0) {
    const std::int64_t before = cursor.remaining();
    const StridedRun run = cursor.next();
    EXPECT_GT(run.length, 0);
    EXPECT_GT(run.count, 0);
    EXPECT_EQ(cursor.remaining(), before - run.bytes());
    if (run.length <= 0 || run.count <= 0 || cursor.remaining() < 0) break;
    for (std::int64_t k = 0; k < run.count; ++k) {
      for (std::int64_t i = 0; i < run.length; ++i) bytes.push_back(run.offset + k * run.stride + i);
    }
  }
  return bytes;
}

std::vector<StridedRun> runs_of(const Pattern& pattern, std::int64_t tile_extent, std::int64_t position,
                                std::int64_t length) {
  std::vector<StridedRun> runs;
  for (PatternCursor cursor(pattern, tile_extent, position, length); cursor.remaining() > 0;) {
    runs.push_back(cursor.next());
  }
  return runs;
}

std::vector<std::byte> serialized(const Pattern& pattern) {
  std::vector<std::byte> bytes;
  pattern.serialize(bytes);
  return bytes;
}

// The numbers and answers of the pattern against those of the list of pieces.
void expect_same(const Pattern& pattern, const std::vector<Extent>& pieces) {
  const std::vector<std::int64_t> bytes = bytes_of(pieces);
  const std::vector<Extent> maximal = merged(pieces);
  ASSERT_TRUE(pattern.representable());
  ASSERT_EQ(pattern.bytes(), static_cast<std::int64_t>(bytes.size()));
  EXPECT_LE(pattern.piece_count(), static_cast<std::int64_t>(pieces.size()));
  EXPECT_GE(pattern.piece_count(), static_cast<std::int64_t>(maximal.size()));
  EXPECT_EQ(pattern.contiguous(), maximal.size() <= 1);
  EXPECT_EQ(pattern.empty(), pieces.empty());
  if (!bytes.empty()) {
    const auto [low, high] = std::minmax_element(bytes.begin(), bytes.end());
    EXPECT_EQ(pattern.bounds(), (Extent{*low, *high + 1 - *low}));
    EXPECT_EQ(pattern.first_offset(), bytes[0]);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_EQ(pattern.offset_of(static_cast<std::int64_t>(i)), bytes[i]) << i;
  }
  EXPECT_EQ(pattern.sorted_disjoint(),
            std::adjacent_find(bytes.begin(), bytes.end(), std::greater_equal<>()) == bytes.end());
  // Merging can only hide a step back, so the naive pieces and the fully merged ones enclose the answer.
  const auto begins_before = [](const Extent& a, const Extent& b) { return a.offset < b.offset; };
  if (std::is_sorted(pieces.begin(), pieces.end(), begins_before)) {
    EXPECT_TRUE(pattern.sorted());
  }
  if (!std::is_sorted(maximal.begin(), maximal.end(), begins_before)) {
    EXPECT_FALSE(pattern.sorted());
  }
}

TEST(Pattern, AgreesWithTheListOfItsPieces) {
  for_random_rounds(3000, [](Random& random) {
    const Sample sample = random_sample(random, random.one_in(2) ? Order::any : Order::sorted_disjoint);
    SCOPED_TRACE(sample.pattern.to_string());
    expect_same(sample.pattern, sample.pieces);
    const std::int64_t far = std::int64_t{1} << random.between(40, 61);
    expect_same(sample.pattern.displaced(far), displaced(sample.pieces, far));
  });
}

TEST(Pattern, CountsBytesBelowAnOffset) {
  for_random_rounds(2000, [](Random& random) {
    const Sample sample = random_sample(random, Order::sorted_disjoint);
    SCOPED_TRACE(sample.pattern.to_string());
    ASSERT_TRUE(sample.pattern.sorted_disjoint());
    const std::int64_t far = random.one_in(2) ? 0 : -(std::int64_t{1} << 41);
    const Pattern pattern = sample.pattern.displaced(far);
    const std::vector<std::int64_t> bytes = bytes_of(displaced(sample.pieces, far));
    const Extent bounds = pattern.bounds();
    for (int i = 0; i < 40; ++i) {
      const std::int64_t offset = bounds.offset + random.between(-3, bounds.length + 3);
      const auto below = std::lower_bound(bytes.begin(), bytes.end(), offset) - bytes.begin();
      ASSERT_EQ(pattern.bytes_below(offset), below) << offset;
    }
    EXPECT_EQ(pattern.bytes_below(std::numeric_limits<std::int64_t>::min()), 0);
    EXPECT_EQ(pattern.bytes_below(kMax), pattern.bytes());
  });
}

TEST(PatternCursor, WalksAnyRangeOfAnyTiling) {
  for_random_rounds(4000, [](Random& random) {
    const Sample sample = random_sample(random, random.one_in(2) ? Order::any : Order::sorted_disjoint);
    const std::int64_t bytes = sample.pattern.bytes();
    if (bytes == 0) return;
    // Tiles may overlap, run backwards, or continue each other exactly.
    const std::int64_t tile_extent =
        random.one_in(3) ? sample.pieces.back().end() - sample.pieces.front().offset : random.between(-80, 300);
    const std::int64_t position = random.between(0, 3 * bytes);
    const std::int64_t length = random.one_in(4) ? random.between(0, 6) : random.between(0, 3 * bytes);
    SCOPED_TRACE(sample.pattern.to_string());
    EXPECT_EQ(walked(PatternCursor(sample.pattern, tile_extent, position, length)),
              tiled_bytes(sample.pieces, tile_extent, position, length));
  });
}

TEST(PatternCursor, WalksAnEmptyRange) {
  EXPECT_EQ(PatternCursor(Pattern(), 10, 0, 0).remaining(), 0);
  EXPECT_EQ(PatternCursor(Pattern::block(0, 8), 10, 12, 0).remaining(), 0);
}

TEST(PatternCursor, YieldsAsFewRunsAsTheLayoutAllows) {
  const Pattern block = Pattern::block(0, 8);
  using Runs = std::vector<StridedRun>;
  // A tile of one block: the tiling is one run, cut only at its ends.
  EXPECT_EQ(runs_of(block.displaced(16), 64, 4, 8'000'000),
            (Runs{{20, 4, 0, 1}, {80, 8, 64, 999'999}, {16 + 64'000'000, 4, 0, 1}}));
  // A tile without gaps, and one whose tiling continues its own stride.
  EXPECT_EQ(runs_of(block, 8, 3, 1000), (Runs{{3, 1000, 0, 1}}));
  EXPECT_EQ(runs_of(Pattern::strided(block, 10, 32), 320, 80, 8000), (Runs{{320, 8, 32, 1000}}));
  // Rows of a plane, plane after plane.
  const Pattern planes = Pattern::strided(Pattern::strided(block, 4, 100), 3, 1000);
  EXPECT_EQ(runs_of(planes, 3000, 0, 96), (Runs{{0, 8, 100, 4}, {1000, 8, 100, 4}, {2000, 8, 100, 4}}));
  // An indexed type with regular stretches.
  const std::vector<std::int64_t> offsets = {0, 20, 40, 60, 100, 130, 160};
  EXPECT_EQ(runs_of(Pattern::list(offsets, block), 0, 0, 56), (Runs{{0, 8, 20, 4}, {100, 8, 30, 3}}));
  const std::vector<std::int64_t> lengths = {8, 8, 8, 8, 8, 8, 4};
  EXPECT_EQ(runs_of(Pattern::blocks(offsets, lengths), 0, 0, 52),
            (Runs{{0, 8, 20, 4}, {100, 8, 30, 2}, {160, 4, 0, 1}}));
}

TEST(Pattern, FindsTheStridesInAFlatList) {
  // Every row of a 3-D block, one by one.
  std::vector<std::int64_t> offsets;
  for (std::int64_t plane = 0; plane < 50; ++plane) {
    for (std::int64_t row = 0; row < 40; ++row) offsets.push_back(1000 + plane * 100'000 + row * 512);
  }
  const Pattern pattern = Pattern::list(offsets, Pattern::block(0, 64));
  EXPECT_EQ(pattern.to_string(), "50 x 100000 of 40 x 512 of [1000, 1064)");
}

TEST(Pattern, HoldsAHugeVectorInFewBytes) {
  const Pattern vector = Pattern::strided(Pattern::block(0, 8), 100'000'000, 64);
  EXPECT_LT(vector.memory_bytes(), 1024U);
  EXPECT_EQ(vector.piece_count(), 100'000'000);
  EXPECT_EQ(vector.bytes(), 800'000'000);
  EXPECT_EQ(vector.offset_of(799'999'999), 99'999'999LL * 64 + 7);
  EXPECT_LT(serialized(vector).size(), 32U);
}

TEST(Pattern, HoldsListsAsArraysOfNumbers) {
  constexpr std::size_t kBlocks = 100'000;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    offsets.push_back(static_cast<std::int64_t>(i * 100 + i * i % 37));
    lengths.push_back(static_cast<std::int64_t>(1 + i % 5));
  }
  EXPECT_LT(Pattern::list(offsets, Pattern::block(0, 8)).memory_bytes(), 9 * kBlocks);
  EXPECT_LT(Pattern::blocks(offsets, lengths).memory_bytes(), 17 * kBlocks);
}

// A tree with 2^40 paths and a few dozen nodes: whatever visits paths instead of nodes never ends.
Pattern shared_tree() {
  Pattern pattern = Pattern::block(0, 1);
  std::int64_t reach = 1;
  for (int level = 0; level < 40; ++level) {
    const std::vector<std::int64_t> offsets = {0, reach + 1, 2 * reach + 3};
    const std::vector<Pattern> children = {pattern, Pattern::block(0, 1), pattern};
    pattern = Pattern::list(offsets, children);
    reach = 3 * reach + 4;
    if (reach > kMax / 8) break;
  }
  return pattern;
}

TEST(Pattern, SharesSubtrees) {
  const Pattern pattern = shared_tree();
  ASSERT_TRUE(pattern.representable());
  EXPECT_GT(pattern.bytes(), std::int64_t{1} << 36);
  EXPECT_LT(pattern.memory_bytes(), 40'000U);
  EXPECT_LT(serialized(pattern).size(), 1000U);
  EXPECT_LT(pattern.to_string().size(), 1000U);
  const Result<Pattern> back = Pattern::parse(serialized(pattern));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().offset_of(pattern.bytes() - 1), pattern.offset_of(pattern.bytes() - 1));
}

TEST(Pattern, ComparesEqualTreesOfSharedPartsOnce) {
  // Two builds of one layout share nothing with each other, so only the bound on comparisons ends this.
  const std::vector<std::int64_t> offsets = {0, kMax / 4};
  const std::vector<Pattern> children = {shared_tree(), shared_tree()};
  EXPECT_EQ(Pattern::list(offsets, children).bytes(), 2 * children[0].bytes());
}

TEST(Pattern, RefusesNumbersThatDoNotFit) {
  const Pattern block = Pattern::block(0, 8);
  const std::vector<std::int64_t> far_apart = {-kMax, kMax - 8};
  const std::vector<std::int64_t> two_lengths = {4, 8};
  const Pattern broken = Pattern::strided(block, kMax, 8);
  for (const Pattern& pattern :
       {broken, Pattern::block(kMax, 2), Pattern::strided(block, 3, kMax), Pattern::strided(block, kMax / 2, 0),
        Pattern::strided(block, kMax, kMax), block.displaced(kMax), Pattern::list(far_apart, block),
        Pattern::blocks(far_apart, two_lengths), Pattern::strided(broken, 2, 16), broken.displaced(1),
        Pattern::list(std::vector<std::int64_t>{0}, std::vector<Pattern>{broken})}) {
    EXPECT_FALSE(pattern.representable());
    EXPECT_EQ(pattern.bytes(), 0);
    EXPECT_EQ(pattern.bounds(), Extent{});
  }
}

TEST(Pattern, RefusesToNestWithoutEnd) {
  Pattern pattern = Pattern::block(0, 1);
  for (int level = 0; level < 200; ++level) pattern = Pattern::strided(pattern, 2, -3);
  EXPECT_FALSE(pattern.representable());
}

TEST(PatternWire, HasTheseBytes) {
  const std::vector<std::int64_t> offsets = {0, 300, 310};
  const std::vector<std::int64_t> lengths = {8, 4, 16};
  const Pattern pattern = Pattern::strided(Pattern::blocks(offsets, lengths), 5, 1000).displaced(-1);
  const int expected[] = {1, 2,                              // version, nodes
                          3, 3, 8, 0xc8, 0x04, 4, 0x0c, 16,  // blocks: 3, 8 bytes, 292 later 4, 6 later 16
                          1, 1, 5, 0xd0, 0x0f,               // strided: the node before, 5 times, 1000 apart
                          1};                                // -1
  std::vector<int> bytes;
  for (const std::byte byte : serialized(pattern)) bytes.push_back(static_cast<int>(byte));
  EXPECT_EQ(bytes, std::vector<int>(std::begin(expected), std::end(expected)));
}

TEST(PatternWire, BringsEveryPatternBack) {
  for_random_rounds(2000, [](Random& random) {
    const Sample sample = random_sample(random, random.one_in(2) ? Order::any : Order::sorted_disjoint);
    SCOPED_TRACE(sample.pattern.to_string());
    const std::vector<std::byte> bytes = serialized(sample.pattern);
    const Result<Pattern> back = Pattern::parse(bytes);
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    expect_same(back.value(), sample.pieces);
    EXPECT_EQ(serialized(back.value()), bytes);
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      EXPECT_EQ(Pattern::parse(std::span(bytes).first(n)).status().code(), Code::corrupt);
    }
  });
}

TEST(PatternWire, RefusesWhatIsNotATree) {
  const std::vector<std::vector<int>> inputs = {
      {},                               // nothing
      {2, 0},                           // another version
      {1, 0, 0},                        // more than the empty pattern
      {1, 1, 0, 0, 0},                  // a block of no bytes
      {1, 1, 5, 8, 0},                  // no such kind
      {1, 2, 0, 8, 0, 4, 0},            // two trees
      {1, 1, 1, 1, 2, 16, 0},           // a child that does not exist
      {1, 2, 0, 8, 1, 0, 2, 16, 0},     // a node inside itself
      {1, 2, 0, 8, 1, 1, 1, 16, 0},     // repeated once
      {1, 1, 3, 100, 8, 0},             // more blocks than there are bytes
      {1, 1, 3, 2, 8, 2, 0, 0},         // an empty block among others
      {1, 2, 0, 8, 4, 2, 1, 16, 2, 0},  // a list whose second child does not exist
      {1, 200, 0, 8, 0},                // more nodes than there are bytes
      {1, 2, 0, 8, 1, 1, 2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2, 0},  // a stride of 65 bits
      {1, 1, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0},              // 2^63 bytes
      {1, 1, 0, 8, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},              // at 2^63 - 1
      {1, 1, 0, 8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},           // a number without end
  };
  for (const std::vector<int>& input : inputs) {
    std::vector<std::byte> bytes;
    for (const int byte : input) bytes.push_back(static_cast<std::byte>(byte));
    EXPECT_EQ(Pattern::parse(bytes).status().code(), Code::corrupt) << ::testing::PrintToString(input);
  }
}

// Whatever parse() accepts must be safe to use.
void use(const Pattern& pattern) {
  EXPECT_LE(pattern.piece_count(), pattern.bytes());
  EXPECT_FALSE(pattern.to_string().empty());
  if (pattern.empty()) return;
  const Extent bounds = pattern.bounds();
  PatternCursor cursor(pattern, 0, 0, pattern.bytes());
  for (int i = 0; i < 50 && cursor.remaining() > 0; ++i) {
    const StridedRun run = cursor.next();
    EXPECT_TRUE(bounds.contains({run.offset, run.length}));
  }
  EXPECT_TRUE(bounds.contains({pattern.offset_of(pattern.bytes() - 1), 1}));
  if (pattern.sorted_disjoint()) {
    EXPECT_EQ(pattern.bytes_below(bounds.end()), pattern.bytes());
  }
}

TEST(PatternWire, SurvivesDamagedBytes) {
  for_random_rounds(3000, [](Random& random) {
    std::vector<std::byte> bytes = serialized(random_sample(random, Order::any).pattern);
    for (std::int64_t n = random.between(1, 4); n > 0; --n) {
      const auto at = bytes.begin() + random.between(0, static_cast<std::int64_t>(bytes.size()) - 1);
      const auto value = static_cast<std::byte>(random.one_in(3) ? 0xff : random.between(0, 255));
      switch (random.between(0, 3)) {
        case 0:
          bytes.insert(at, static_cast<std::size_t>(random.between(1, 10)), value);
          break;
        case 1:
          if (bytes.size() > 1) bytes.erase(at);
          break;
        default:
          *at = value;
      }
    }
    // An exact copy on the heap, so that a read past the end is one that the address sanitizer sees.
    const std::vector<std::byte> exact(bytes.begin(), bytes.end());
    const Result<Pattern> result = Pattern::parse(exact);
    if (result.ok()) {
      use(result.value());
    } else {
      EXPECT_EQ(result.status().code(), Code::corrupt);
    }
  });
}

}  // namespace
}  // namespace spillway::extent
