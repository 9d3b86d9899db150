#include "view/copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace spillway::view {
namespace {

// Pieces of a length known to the compiler: a few registers.
template <std::int64_t kLength>
struct FixedPiece {
  void operator()(std::byte* to, const std::byte* from) const { std::memcpy(to, from, kLength); }
};

// Pieces of kPart to 2 * kPart bytes: two parts that overlap in the middle, without a loop or a branch.
template <std::int64_t kPart>
struct ShortPiece {
  std::int64_t length;
  void operator()(std::byte* to, const std::byte* from) const {
    const std::int64_t second = length - kPart;
    std::memcpy(to, from, kPart);
    std::memcpy(to + second, from + second, kPart);
  }
};

struct LongPiece {
  std::int64_t length;
  void operator()(std::byte* to, const std::byte* from) const {
    std::memcpy(to, from, static_cast<std::size_t>(length));
  }
};

struct Strides {
  std::int64_t to;
  std::int64_t from;
};

// Strides of two lines and more defeat the hardware's prefetching, which costs a fifth to a third of the
// speed once the data does not fit into the second-level cache (extent_bench). One line of the piece that is
// due in about 2 KiB is asked for; from there on the hardware follows. Longer pieces gain nothing.
constexpr std::int64_t kAheadBytes = 2048;
constexpr std::int64_t kAheadPiecesMax = 64;
constexpr std::int64_t kAheadStrideMin = 128;
constexpr std::int64_t kFootprintMin = 1 << 20;

// How many pieces to look ahead; 0: not at all.
std::int64_t pieces_ahead(const Strides& strides, std::int64_t length, std::int64_t count) {
  const std::int64_t stride = std::max(std::abs(strides.to), std::abs(strides.from));
  if (length > kAheadBytes || stride < kAheadStrideMin || stride < kFootprintMin / count) return 0;
  return std::min({kAheadBytes / length, kAheadPiecesMax, count});
}

template <bool kAhead, typename Piece>
inline void copy_in_order(Piece piece, std::byte* to, const std::byte* from, Strides strides, std::int64_t count,
                          std::int64_t ahead) {
  const auto copy = [&](std::int64_t i) {
    if constexpr (kAhead) {
      __builtin_prefetch(from + (ahead + i) * strides.from);
      __builtin_prefetch(to + (ahead + i) * strides.to, 1);
    }
    piece(to + i * strides.to, from + i * strides.from);
  };
  for (; count >= 4; count -= 4) {
    copy(0);
    copy(1);
    copy(2);
    copy(3);
    to += 4 * strides.to;
    from += 4 * strides.from;
  }
  for (std::int64_t i = 0; i < count; ++i) copy(i);
}

template <typename Piece>
inline void copy_pieces(Piece piece, std::byte* to, const std::byte* from, Strides strides, std::int64_t length,
                        std::int64_t count) {
  const std::int64_t ahead = pieces_ahead(strides, length, count);
  if (ahead == 0) return copy_in_order<false>(piece, to, from, strides, count, 0);
  const std::int64_t announced = count - ahead;
  copy_in_order<true>(piece, to, from, strides, announced, ahead);
  copy_in_order<false>(piece, to + announced * strides.to, from + announced * strides.from, strides, ahead, 0);
}

// With one side dense its stride is a constant too, and neighbouring pieces share their address arithmetic.
template <std::int64_t kLength>
void copy_fixed(std::byte* to, const std::byte* from, Strides strides, std::int64_t count) {
  const FixedPiece<kLength> piece;
  if (strides.to == kLength) {
    copy_pieces(piece, to, from, {kLength, strides.from}, kLength, count);
  } else if (strides.from == kLength) {
    copy_pieces(piece, to, from, {strides.to, kLength}, kLength, count);
  } else {
    copy_pieces(piece, to, from, strides, kLength, count);
  }
}

void copy_short(std::byte* to, const std::byte* from, const Strides& strides, std::int64_t length, std::int64_t count) {
  if (length < 4) return copy_pieces(ShortPiece<2>{length}, to, from, strides, length, count);
  if (length < 8) return copy_pieces(ShortPiece<4>{length}, to, from, strides, length, count);
  if (length < 16) return copy_pieces(ShortPiece<8>{length}, to, from, strides, length, count);
  if (length < 32) return copy_pieces(ShortPiece<16>{length}, to, from, strides, length, count);
  if (length < 64) return copy_pieces(ShortPiece<32>{length}, to, from, strides, length, count);
  copy_pieces(ShortPiece<64>{length}, to, from, strides, length, count);
}

constexpr std::int64_t kShortMax = 128;

}  // namespace

void copy_strided(std::byte* destination, std::int64_t destination_stride, const std::byte* source,
                  std::int64_t source_stride, std::int64_t length, std::int64_t count) {
  const Strides strides{destination_stride, source_stride};
  if (count == 1 || (destination_stride == length && source_stride == length)) {
    std::memcpy(destination, source, static_cast<std::size_t>(length * count));
    return;
  }
  switch (length) {
    case 1:
      return copy_fixed<1>(destination, source, strides, count);
    case 2:
      return copy_fixed<2>(destination, source, strides, count);
    case 4:
      return copy_fixed<4>(destination, source, strides, count);
    case 8:
      return copy_fixed<8>(destination, source, strides, count);
    case 16:
      return copy_fixed<16>(destination, source, strides, count);
    case 32:
      return copy_fixed<32>(destination, source, strides, count);
    case 64:
      return copy_fixed<64>(destination, source, strides, count);
    default:
      break;
  }
  if (length <= kShortMax) return copy_short(destination, source, strides, length, count);
  copy_pieces(LongPiece{length}, destination, source, strides, length, count);
}

}  // namespace spillway::view
