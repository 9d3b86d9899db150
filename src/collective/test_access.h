#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "extent/test_patterns.h"
#include "view/file_view.h"

// For tests only: random file views and memory layouts beside the naive lists of their bytes.
namespace spillway::collective {

struct SampleView {
  view::FileView view;
  std::vector<extent::Extent> pieces;  // of the filetype
  // File offsets of view bytes [position, position + length).
  [[nodiscard]] std::vector<std::int64_t> offsets(const view::ViewRange& range) const {
    std::vector<std::int64_t> result =
        extent::tiled_bytes(pieces, view.filetype_extent(), range.position, range.length);
    for (std::int64_t& offset : result) offset += view.displacement();
    return result;
  }
};

inline SampleView view_of(std::vector<extent::Extent> pieces, const extent::Pattern& pattern, std::int64_t displacement,
                          std::int64_t tile_extent) {
  Result<view::FileView> view = view::FileView::make(displacement, 1, pattern, tile_extent, true);
  EXPECT_TRUE(view.ok()) << view.status().to_string();
  return {std::move(view).value(), std::move(pieces)};
}

// Bytes from `displacement` on.
inline SampleView contiguous_view(std::int64_t displacement) {
  return view_of({{0, 1}}, extent::Pattern::block(0, 1), displacement, 1);
}

// Any view that may be written through; views of different ranks know nothing of each other.
inline SampleView random_view(extent::Random& random) {
  extent::Sample sample;
  do {
    sample = extent::random_sample(random, extent::Order::sorted_disjoint);
  } while (sample.pieces.empty());
  const std::int64_t shift = random.between(0, 20) - sample.pieces.front().offset;
  const std::vector<extent::Extent> pieces = extent::displaced(sample.pieces, shift);
  const std::int64_t tile = pieces.back().end() + (random.one_in(2) ? 0 : random.between(1, 30));
  return view_of(pieces, sample.pattern.displaced(shift), random.between(0, 50), tile);
}

// One view per rank that together deal blocks of a file to the ranks in turn: no byte belongs to two ranks.
inline std::vector<SampleView> dealt_views(extent::Random& random, int ranks) {
  const std::int64_t block = random.one_in(2) ? random.between(1, 9) : random.between(10, 200);
  const std::int64_t gap = random.one_in(3) ? random.between(1, 30) : 0;
  const std::int64_t displacement = random.between(0, 100);
  std::vector<SampleView> views;
  for (int rank = 0; rank < ranks; ++rank) {
    const extent::Extent piece{rank * (block + gap), block};
    views.push_back(
        view_of({piece}, extent::Pattern::block(piece.offset, piece.length), displacement, ranks * (block + gap)));
  }
  return views;
}

// Memory for `length` stream bytes; at(i) is where stream byte i lies.
struct SampleMemory {
  std::vector<std::byte> bytes;
  std::vector<std::int64_t> places;
  view::MemoryLayout layout;
  [[nodiscard]] std::byte& at(std::int64_t i) {
    return bytes[static_cast<std::size_t>(places[static_cast<std::size_t>(i)])];
  }
};

inline SampleMemory random_memory(extent::Random& random, std::int64_t length) {
  SampleMemory memory;
  extent::Sample sample;
  std::int64_t tile = 0;
  if (random.one_in(3)) {
    sample = {extent::Pattern::block(0, length + 1), {{0, length + 1}}};
    tile = length + 1;
  } else if (random.one_in(2)) {
    // Backwards in memory.
    sample = {extent::Pattern::strided(extent::Pattern::block(8, 2), 3, -4), {{8, 2}, {4, 2}, {0, 2}}};
    tile = 11;
  } else {
    do {
      sample = extent::random_sample(random, extent::Order::sorted_disjoint);
    } while (sample.pieces.empty());
    const std::int64_t shift = -sample.pieces.front().offset;
    sample = {sample.pattern.displaced(shift), extent::displaced(sample.pieces, shift)};
    tile = sample.pieces.back().end() + random.between(0, 5);
  }
  memory.places = extent::tiled_bytes(sample.pieces, tile, 0, length);
  const std::int64_t end =
      memory.places.empty() ? 0 : *std::max_element(memory.places.begin(), memory.places.end()) + 1;
  memory.bytes.resize(static_cast<std::size_t>(end) + 1);
  memory.layout = {memory.bytes.data(), sample.pattern, tile};
  return memory;
}

}  // namespace spillway::collective
