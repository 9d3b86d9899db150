#include "view/copy.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "extent/test_random.h"

namespace spillway::view {
namespace {

// Every byte of a piece, and none beside it: buffers end where the last piece does, so that the address
// sanitizer sees more.
void expect_copy(std::int64_t length, std::int64_t count, std::int64_t to_stride, std::int64_t from_stride) {
  const auto buffer_bytes = [&](std::int64_t stride) {
    return static_cast<std::size_t>(length + (count - 1) * std::abs(stride));
  };
  std::vector<std::byte> source(buffer_bytes(from_stride));
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(1 + i * 7 % 251);
  std::vector<std::byte> destination(buffer_bytes(to_stride));
  std::vector<std::byte> expected(destination.size());
  // With a negative stride the first piece is the last one in memory.
  const std::int64_t to_begin = to_stride < 0 ? -to_stride * (count - 1) : 0;
  const std::int64_t from_begin = from_stride < 0 ? -from_stride * (count - 1) : 0;
  for (std::int64_t k = 0; k < count; ++k) {
    for (std::int64_t i = 0; i < length; ++i) {
      expected.at(static_cast<std::size_t>(to_begin + k * to_stride + i)) =
          source.at(static_cast<std::size_t>(from_begin + k * from_stride + i));
    }
  }
  copy_strided(destination.data() + to_begin, to_stride, source.data() + from_begin, from_stride, length, count);
  EXPECT_EQ(destination, expected) << length << " bytes, " << count << " times, " << to_stride << " from "
                                   << from_stride;
}

TEST(CopyStrided, CopiesPiecesOfEveryShortLength) {
  for (std::int64_t length = 1; length <= 140; ++length) {
    for (const std::int64_t count : {1, 2, 3, 4, 5, 9}) {
      for (const std::int64_t to_gap : {0, 3}) {
        for (const std::int64_t from_gap : {0, 5}) expect_copy(length, count, length + to_gap, length + from_gap);
      }
    }
  }
}

TEST(CopyStrided, CopiesWhatIsTooFarApartForTheCache) {
  constexpr std::int64_t kFar = 3 << 20;
  for (const std::int64_t length : {1, 8, 24, 64, 100, 300, 2048, 5000}) {
    for (const std::int64_t stride : {length + 128, std::int64_t{100'000}}) {
      expect_copy(length, kFar / stride + 3, stride, length);
      expect_copy(length, kFar / stride + 3, length, stride);
      expect_copy(length, kFar / stride + 3, stride, -stride);
    }
    expect_copy(length, 2, length, kFar);
  }
}

TEST(CopyStrided, CopiesWithAnyStrides) {
  extent::for_random_rounds(1000, [](extent::Random& random) {
    const std::int64_t length = std::int64_t{1} << random.between(0, 10);
    const std::int64_t odd = random.one_in(2) ? 0 : random.between(0, length - 1);
    const std::int64_t bytes = length + odd;
    const auto stride = [&] { return (bytes + random.between(0, 100)) * (random.one_in(4) ? -1 : 1); };
    // The source may repeat or overlap itself; the destination not.
    const std::int64_t from_stride = random.one_in(5) ? random.between(-bytes, bytes) : stride();
    expect_copy(bytes, random.between(1, 40), stride(), from_stride);
  });
}

TEST(CopyStrided, CopiesNothing) {
  std::byte byte{7};
  copy_strided(&byte, 8, &byte, 8, 8, 0);
  EXPECT_EQ(byte, std::byte{7});
}

}  // namespace
}  // namespace spillway::view
