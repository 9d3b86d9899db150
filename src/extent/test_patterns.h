#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "extent/pattern.h"
#include "extent/test_random.h"

namespace spillway::extent {

// For tests only. A Pattern together with the naive list of its pieces, built side by side by the same steps.
struct Sample {
  Pattern pattern;
  std::vector<Extent> pieces;  // in stream order, as given: not merged, none empty
};

enum class Order { any, sorted_disjoint };

inline std::vector<Extent> displaced(std::vector<Extent> pieces, std::int64_t offset) {
  for (Extent& piece : pieces) piece.offset += offset;
  return pieces;
}

// The offset of every byte, in stream order.
inline std::vector<std::int64_t> bytes_of(const std::vector<Extent>& pieces) {
  std::vector<std::int64_t> bytes;
  for (const Extent& piece : pieces) {
    for (std::int64_t i = 0; i < piece.length; ++i) bytes.push_back(piece.offset + i);
  }
  return bytes;
}

// Pieces that continue each other in the stream joined.
inline std::vector<Extent> merged(const std::vector<Extent>& pieces) {
  std::vector<Extent> result;
  for (const Extent& piece : pieces) {
    if (!result.empty() && result.back().end() == piece.offset) {
      result.back().length += piece.length;
    } else {
      result.push_back(piece);
    }
  }
  return result;
}

class SampleMaker {
 public:
  SampleMaker(Random& random, Order order) : random_(random), order_(order) {}

  Sample make(int depth) {
    if (depth == 0) return block();
    switch (random_.between(0, 6)) {
      case 0:
        return block();
      case 1:
        return blocks();
      case 2:
        return list(depth);
      case 3:
        return list_of_same(depth);
      default:
        return strided(depth);
    }
  }

 private:
  // How far a part must be moved so that it follows what there is already; anywhere if order does not matter.
  std::int64_t place(const std::vector<Extent>& before, const std::vector<Extent>& part) {
    if (order_ == Order::any || before.empty() || part.empty()) return random_.between(-60, 60);
    const std::int64_t gap = random_.one_in(3) ? 0 : random_.between(0, 12);
    return before.back().end() + gap - part.front().offset;
  }

  static void add(Sample& sample, const std::vector<Extent>& part, std::int64_t offset) {
    const std::vector<Extent> moved = displaced(part, offset);
    sample.pieces.insert(sample.pieces.end(), moved.begin(), moved.end());
  }

  Sample block() {
    const Extent extent{random_.between(-8, 40), random_.one_in(12) ? 0 : random_.between(1, 9)};
    Sample sample{Pattern::block(extent.offset, extent.length), {}};
    if (!extent.empty()) sample.pieces.push_back(extent);
    return sample;
  }

  Sample blocks() {
    std::vector<std::int64_t> offsets;
    std::vector<std::int64_t> lengths;
    Sample sample;
    const bool equal = random_.one_in(2);
    for (std::int64_t n = random_.between(0, 6); n > 0; --n) {
      lengths.push_back(equal ? 4 : random_.between(0, 5));
      const Extent piece{0, lengths.back()};
      offsets.push_back(place(sample.pieces, {piece}));
      if (!piece.empty()) add(sample, {piece}, offsets.back());
    }
    sample.pattern = Pattern::blocks(offsets, lengths);
    return sample;
  }

  Sample list(int depth) {
    std::vector<std::int64_t> offsets;
    std::vector<Pattern> children;
    Sample sample;
    for (std::int64_t n = random_.between(0, 4); n > 0; --n) {
      const Sample child = make(depth - 1);
      offsets.push_back(place(sample.pieces, child.pieces));
      children.push_back(child.pattern);
      add(sample, child.pieces, offsets.back());
    }
    sample.pattern = Pattern::list(offsets, children);
    return sample;
  }

  Sample list_of_same(int depth) {
    const Sample child = make(depth - 1);
    std::vector<std::int64_t> offsets;
    Sample sample;
    for (std::int64_t n = random_.between(0, 6); n > 0; --n) {
      // Sometimes regular, so that lists which are strided in disguise come up.
      const bool regular = offsets.size() >= 2 && random_.one_in(2);
      const std::size_t last = offsets.size();
      offsets.push_back(regular ? 2 * offsets[last - 1] - offsets[last - 2] : place(sample.pieces, child.pieces));
      add(sample, child.pieces, offsets.back());
    }
    sample.pattern = Pattern::list(offsets, child.pattern);
    return sample;
  }

  Sample strided(int depth) {
    const Sample child = make(depth - 1);
    const std::int64_t count = random_.one_in(10) ? 0 : random_.between(1, 5);
    std::int64_t stride = random_.between(-50, 50);
    if (order_ == Order::sorted_disjoint && !child.pieces.empty()) stride = place(child.pieces, child.pieces);
    Sample sample{Pattern::strided(child.pattern, count, stride), {}};
    for (std::int64_t k = 0; k < count; ++k) add(sample, child.pieces, k * stride);
    return sample;
  }

  Random& random_;
  Order order_;
};

inline Sample random_sample(Random& random, Order order) {
  return SampleMaker(random, order).make(static_cast<int>(random.between(0, 4)));
}

// The offsets of the stream bytes [position, position + length) of the tiling.
inline std::vector<std::int64_t> tiled_bytes(const std::vector<Extent>& pieces, std::int64_t tile_extent,
                                             std::int64_t position, std::int64_t length) {
  const std::vector<std::int64_t> tile = bytes_of(pieces);
  const auto tile_bytes = static_cast<std::int64_t>(tile.size());
  std::vector<std::int64_t> result;
  for (std::int64_t i = position; i < position + length; ++i) {
    result.push_back(tile[static_cast<std::size_t>(i % tile_bytes)] + i / tile_bytes * tile_extent);
  }
  return result;
}

}  // namespace spillway::extent
