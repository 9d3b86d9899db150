#include "view/file_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "extent/test_patterns.h"
#include "view/copy.h"

namespace spillway::view {
namespace {

using extent::Extent;
using extent::for_random_rounds;
using extent::Order;
using extent::Pattern;
using extent::Random;
using extent::Sample;

// A view and the naive list of the pieces of its filetype.
struct ViewSample {
  FileView view;
  std::vector<Extent> pieces;

  [[nodiscard]] std::vector<std::int64_t> bytes(std::int64_t position, std::int64_t length) const {
    std::vector<std::int64_t> result = extent::tiled_bytes(pieces, view.filetype_extent(), position, length);
    for (std::int64_t& offset : result) offset += view.displacement();
    return result;
  }
};

ViewSample random_view(Random& random) {
  for (;;) {
    const Sample sample = random_sample(random, Order::sorted_disjoint);
    if (sample.pattern.empty()) continue;
    const Extent bounds = sample.pattern.bounds();
    const std::int64_t shift = random.between(0, 30) - bounds.offset;
    // The extent may end before the last piece does, if the first one begins late.
    const std::int64_t filetype_extent = bounds.length + (random.one_in(3) ? 0 : random.between(0, 40));
    const std::int64_t displacement = random.one_in(2) ? random.between(0, 50) : std::int64_t{1} << 43;
    const Result<FileView> view =
        FileView::make(displacement, 1, sample.pattern.displaced(shift), filetype_extent, random.one_in(2));
    EXPECT_TRUE(view.ok()) << view.status().to_string();
    if (view.ok()) return {view.value(), extent::displaced(sample.pieces, shift)};
  }
}

ViewRange random_range(Random& random, const FileView& view) {
  return {random.between(0, 3 * view.filetype().bytes()), random.between(0, 3 * view.filetype().bytes())};
}

TEST(FileView, StartsAsTheBytesOfTheFile) {
  const FileView view;
  EXPECT_TRUE(view.contiguous());
  EXPECT_TRUE(view.sorted_disjoint());
  EXPECT_EQ(view.file_offset(123'456'789'012), 123'456'789'012);
  EXPECT_EQ(view.bytes_below(77), 77);
  EXPECT_EQ(view.bounds(10, 5), (Extent{10, 5}));
  EXPECT_EQ(view.cursor(10, 1000).next(), (extent::StridedRun{10, 1000, 0, 1}));
}

TEST(FileView, MapsEveryByteAsItsTilesDo) {
  for_random_rounds(1500, [](Random& random) {
    const ViewSample sample = random_view(random);
    const FileView& view = sample.view;
    SCOPED_TRACE(view.filetype().to_string());
    const std::vector<std::int64_t> bytes = sample.bytes(0, 6 * view.filetype().bytes());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_EQ(view.file_offset(static_cast<std::int64_t>(i)), bytes[i]);
      ASSERT_EQ(view.bytes_below(bytes[i]), static_cast<std::int64_t>(i));
      ASSERT_EQ(view.bytes_below(bytes[i] + 1), static_cast<std::int64_t>(i) + 1);
    }
    EXPECT_EQ(view.bytes_below(0), 0);
    EXPECT_EQ(view.contiguous(), bytes.back() - view.displacement() == static_cast<std::int64_t>(bytes.size()) - 1);
    const ViewRange range = random_range(random, view);
    const std::vector<std::int64_t> inside = sample.bytes(range.position, range.length);
    const Extent bounds = view.bounds(range.position, range.length);
    EXPECT_EQ(bounds.empty(), inside.empty());
    if (!inside.empty()) {
      EXPECT_EQ(bounds, (Extent{inside.front(), inside.back() + 1 - inside.front()}));
    }
  });
}

TEST(FileView, ClipsAnAccessToAFileRange) {
  for_random_rounds(1500, [](Random& random) {
    const ViewSample sample = random_view(random);
    const ViewRange access = random_range(random, sample.view);
    const std::vector<std::int64_t> bytes = sample.bytes(access.position, access.length);
    const Extent bounds = sample.view.bounds(access.position, access.length);
    const Extent range{bounds.offset + random.between(-5, bounds.length), random.between(0, bounds.length + 10)};
    const ViewRange inside = clip(sample.view, access, range);
    const auto first = std::lower_bound(bytes.begin(), bytes.end(), range.offset);
    const auto last = std::lower_bound(bytes.begin(), bytes.end(), range.end());
    EXPECT_EQ(inside.length, last - first);
    if (inside.length > 0) {
      EXPECT_EQ(inside.position, access.position + (first - bytes.begin()));
    }
  });
}

TEST(FileView, BoundsOverlappingTilesOfAFileThatIsOnlyRead) {
  for_random_rounds(1500, [](Random& random) {
    // Pieces that begin in order but may reach over the next ones, in tiles that do so too.
    std::vector<std::int64_t> offsets = {random.between(0, 9)};
    std::vector<std::int64_t> lengths = {random.between(1, 30)};
    for (std::int64_t n = random.between(0, 5); n > 0; --n) {
      offsets.push_back(offsets.back() + random.between(1, 9));
      lengths.push_back(random.between(1, 30));
    }
    ViewSample sample;
    for (std::size_t i = 0; i < offsets.size(); ++i) sample.pieces.push_back({offsets[i], lengths[i]});
    const Pattern filetype = Pattern::blocks(offsets, lengths);
    const std::int64_t filetype_extent =
        std::max<std::int64_t>(1, offsets.back() - offsets.front()) + random.between(0, 9);
    const Result<FileView> view = FileView::make(7, 1, filetype, filetype_extent, false);
    ASSERT_TRUE(view.ok()) << view.status().to_string();
    sample.view = view.value();
    EXPECT_EQ(FileView::make(7, 1, filetype, filetype_extent, true).ok(), sample.view.sorted_disjoint());
    const ViewRange range = random_range(random, sample.view);
    if (range.length == 0) return;
    const std::vector<std::int64_t> bytes = sample.bytes(range.position, range.length);
    const auto [low, high] = std::minmax_element(bytes.begin(), bytes.end());
    EXPECT_EQ(sample.view.bounds(range.position, range.length), (Extent{*low, *high + 1 - *low}));
  });
}

TEST(FileView, NamesTheRuleThatIsBroken) {
  const Pattern block = Pattern::block(0, 8);
  const std::vector<std::int64_t> down = {16, 0};
  const Pattern decreasing = Pattern::list(down, block);
  struct Case {
    Code code;
    const char* rule;
    Result<FileView> view;
  };
  const Case cases[] = {
      {Code::bad_argument, "the displacement must not be negative", FileView::make(-1, 1, block, 8, true)},
      {Code::bad_type, "the etype must have a size", FileView::make(0, 0, block, 8, true)},
      {Code::bad_type, "a whole number of etypes", FileView::make(0, 3, block, 8, true)},
      {Code::bad_type, "in the filetype must not be negative", FileView::make(0, 8, block.displaced(-1), 8, true)},
      {Code::bad_type, "must have an extent", FileView::make(0, 8, block, 0, true)},
      {Code::bad_type, "must not decrease", FileView::make(0, 8, decreasing, 32, false)},
      {Code::bad_type, "must not overlap itself", FileView::make(0, 8, block, 7, true)},
      {Code::bad_type, "63 bits", FileView::make(0, 8, Pattern::strided(block, 3, INT64_MAX), 8, true)},
  };
  for (const Case& broken : cases) {
    ASSERT_FALSE(broken.view.ok()) << broken.rule;
    EXPECT_EQ(broken.view.status().code(), broken.code) << broken.rule;
    EXPECT_NE(broken.view.status().what().find(broken.rule), std::string::npos) << broken.view.status().what();
    EXPECT_NE(broken.view.status().what().find("MPI-4.1 §14.3"), std::string::npos);
  }
  EXPECT_TRUE(FileView::make(0, 8, block, 7, false).ok());
}

TEST(FileView, RefusesTilesThatStepBack) {
  // Sorted in itself, but the second tile begins before the last piece of the first.
  const Pattern filetype = Pattern::strided(Pattern::block(0, 8), 3, 100);
  EXPECT_EQ(FileView::make(0, 8, filetype, 150, false).status().code(), Code::bad_type);
  EXPECT_TRUE(FileView::make(0, 8, filetype, 208, true).ok());
  // The extent may be shorter than the bounds if the first piece begins late enough (resized types).
  EXPECT_TRUE(FileView::make(0, 8, filetype.displaced(40), 208, true).ok());
}

TEST(FileView, MayHoldNothing) {
  const Result<FileView> made = FileView::make(100, 8, Pattern(), 0, true);
  ASSERT_TRUE(made.ok());
  const FileView& view = made.value();
  EXPECT_TRUE(view.sorted_disjoint());
  EXPECT_EQ(view.file_offset(0), 100);
  EXPECT_EQ(view.bytes_below(1000), 0);
  EXPECT_TRUE(view.bounds(0, 0).empty());
  EXPECT_EQ(view.cursor(0, 0).remaining(), 0);
  EXPECT_EQ(clip(view, {0, 0}, {0, 1000}).length, 0);
  const std::vector<extent::TiledAccess> accesses = {view.access(0, 0)};
  EXPECT_TRUE(extent::coalesced_union(accesses, {0, 1000}).empty());
}

TEST(FileView, ReportsWhatLiesBeyondTheLargestOffset) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const Result<FileView> made = FileView::make(1000, 1, Pattern::block(0, 8), 1 << 20, true);
  ASSERT_TRUE(made.ok());
  const FileView& view = made.value();
  EXPECT_EQ(view.file_offset(kLargest), kLargest);
  EXPECT_EQ(view.bounds(0, kLargest).end(), kLargest);
  EXPECT_EQ(view.bounds(kLargest - 1, 2).end(), kLargest);
  EXPECT_EQ(view.bytes_below(kLargest), (kLargest - 1000) / (1 << 20) * 8 + 8);
}

TEST(FileView, ComesBackFromItsBytes) {
  for_random_rounds(1000, [](Random& random) {
    const ViewSample sample = random_view(random);
    std::vector<std::byte> bytes;
    sample.view.serialize(bytes);
    const Result<FileView> back = FileView::parse(bytes);
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_EQ(back.value().displacement(), sample.view.displacement());
    EXPECT_EQ(back.value().etype_bytes(), sample.view.etype_bytes());
    EXPECT_EQ(back.value().filetype_extent(), sample.view.filetype_extent());
    EXPECT_EQ(back.value().contiguous(), sample.view.contiguous());
    EXPECT_EQ(back.value().sorted_disjoint(), sample.view.sorted_disjoint());
    const std::int64_t last = 2 * sample.view.filetype().bytes() - 1;
    EXPECT_EQ(back.value().file_offset(last), sample.view.file_offset(last));
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      EXPECT_EQ(FileView::parse(std::span(bytes).first(n)).status().code(), Code::corrupt);
    }
  });
}

TEST(FileView, RefusesBytesOfAViewThatCannotBe) {
  // displacement -1, etype 1, extent 8, one block of 8 bytes
  const int input[] = {1, 2, 16, 1, 1, 0, 8, 0};
  std::vector<std::byte> bytes;
  for (const int byte : input) bytes.push_back(static_cast<std::byte>(byte));
  EXPECT_EQ(FileView::parse(bytes).status().code(), Code::corrupt);
  bytes[0] = std::byte{0};
  EXPECT_TRUE(FileView::parse(bytes).ok());
}

// --- Moves -------------------------------------------------------------------------------------------------

// Memory anywhere in a buffer, in any order, also backwards.
struct MemorySample {
  std::vector<std::byte> buffer;
  MemoryLayout layout;
  std::vector<Extent> pieces;
  std::int64_t origin;  // of the layout in the buffer

  [[nodiscard]] std::vector<std::int64_t> bytes(std::int64_t position, std::int64_t length) const {
    return extent::tiled_bytes(pieces, layout.tile_extent, position, length);
  }
};

MemorySample random_memory(Random& random, std::int64_t bytes_min) {
  MemorySample memory;
  Sample sample;
  while (sample.pattern.empty()) sample = random_sample(random, random.one_in(2) ? Order::any : Order::sorted_disjoint);
  memory.pieces = sample.pieces;
  memory.layout.pattern = sample.pattern;
  const Extent bounds = sample.pattern.bounds();
  memory.layout.tile_extent = random.one_in(2) ? sample.pattern.bytes() : random.between(-50, 80);
  const std::int64_t reach = memory.layout.tile_extent * (bytes_min / sample.pattern.bytes() + 1);
  memory.origin = -std::min<std::int64_t>(0, bounds.offset + std::min<std::int64_t>(0, reach));
  const std::int64_t end = memory.origin + bounds.end() + std::max<std::int64_t>(0, reach);
  memory.buffer.resize(static_cast<std::size_t>(std::max<std::int64_t>(end, 1)));
  memory.layout.base = memory.buffer.data() + memory.origin;
  return memory;
}

TEST(MoveCursor, PairsTheStreamsByteByByte) {
  for_random_rounds(2000, [](Random& random) {
    const ViewSample file = random_view(random);
    const ViewRange range = random_range(random, file.view);
    const std::int64_t origin = random.between(0, range.position);
    const MemorySample memory = random_memory(random, range.position - origin + range.length);
    SCOPED_TRACE("file " + file.view.filetype().to_string() + ", memory " + memory.layout.pattern.to_string());
    std::vector<std::int64_t> file_bytes;
    std::vector<std::int64_t> memory_bytes;
    for (MoveCursor cursor(file.view, memory.layout, origin, range); !cursor.done();) {
      const Move move = cursor.next();
      ASSERT_GT(move.length, 0);
      ASSERT_GT(move.count, 0);
      for (std::int64_t k = 0; k < move.count; ++k) {
        for (std::int64_t i = 0; i < move.length; ++i) {
          file_bytes.push_back(move.file_offset + k * move.file_stride + i);
          memory_bytes.push_back(move.memory - memory.layout.base + k * move.memory_stride + i);
        }
      }
    }
    EXPECT_EQ(file_bytes, file.bytes(range.position, range.length));
    EXPECT_EQ(memory_bytes, memory.bytes(range.position - origin, range.length));
  });
}

std::vector<Move> moves_of(const FileView& view, const MemoryLayout& memory, std::int64_t length) {
  std::vector<Move> moves;
  for (MoveCursor cursor(view, memory, 0, {0, length}); !cursor.done();) moves.push_back(cursor.next());
  return moves;
}

void expect_move(const Move& move, const Move& expected) {
  EXPECT_EQ(move.memory, expected.memory);
  EXPECT_EQ(move.file_offset, expected.file_offset);
  EXPECT_EQ(move.length, expected.length);
  EXPECT_EQ(move.count, expected.count);
  if (expected.count == 1) return;
  EXPECT_EQ(move.memory_stride, expected.memory_stride);
  EXPECT_EQ(move.file_stride, expected.file_stride);
}

TEST(MoveCursor, MovesAsMuchAtOnceAsBothSidesAllow) {
  std::vector<std::byte> buffer(4096);
  std::byte* const base = buffer.data();
  const FileView vector = FileView::make(1000, 8, Pattern::block(0, 8), 64, true).value();
  const MemoryLayout plain = MemoryLayout::contiguous_bytes(base, 800);
  const MemoryLayout spread{base, Pattern::block(0, 8), 32};
  const MemoryLayout triples{base, Pattern::block(0, 24), 40};

  std::vector<Move> moves = moves_of(vector, plain, 800);  // contiguous memory, strided file
  ASSERT_EQ(moves.size(), 1U);
  expect_move(moves[0], {base, 8, 1000, 64, 8, 100});
  moves = moves_of(FileView(), spread, 800);  // the other way round
  ASSERT_EQ(moves.size(), 1U);
  expect_move(moves[0], {base, 32, 0, 8, 8, 100});
  moves = moves_of(vector, spread, 800);  // both strided alike
  ASSERT_EQ(moves.size(), 1U);
  expect_move(moves[0], {base, 32, 1000, 64, 8, 100});
  moves = moves_of(FileView(), plain, 800);  // neither
  ASSERT_EQ(moves.size(), 1U);
  expect_move(moves[0], {base, 0, 0, 0, 800, 1});
  moves = moves_of(vector, triples, 48);  // three file pieces to a memory piece
  ASSERT_EQ(moves.size(), 2U);
  expect_move(moves[0], {base, 8, 1000, 64, 8, 3});
  expect_move(moves[1], {base + 40, 8, 1192, 64, 8, 3});
}

TEST(MemoryLayout, KnowsWhenItIsContiguous) {
  std::byte buffer[64];
  EXPECT_TRUE(MemoryLayout::contiguous_bytes(buffer, 64).contiguous());
  EXPECT_TRUE(MemoryLayout::contiguous_bytes(buffer, 0).contiguous());
  EXPECT_TRUE((MemoryLayout{buffer, Pattern::block(4, 8), 8}).contiguous());
  EXPECT_FALSE((MemoryLayout{buffer, Pattern::block(0, 8), 16}).contiguous());
  EXPECT_FALSE((MemoryLayout{buffer, Pattern::strided(Pattern::block(0, 8), 2, 16), 32}).contiguous());
}

}  // namespace
}  // namespace spillway::view
