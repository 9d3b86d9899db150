#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace spillway::extent {

// Numbers in as few bytes as they need: seven bits to a byte, the lowest first, the top bit set on all but
// the last. Signed numbers are folded (0, -1, 1, -2 ...) so that small ones of either sign are short.
inline void put_varint(std::vector<std::byte>& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<std::byte>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<std::byte>(value));
}

inline void put_signed(std::vector<std::byte>& out, std::int64_t value) {
  put_varint(out, (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

// Reads what put_* wrote, from bytes that nobody vouches for. After the first failure every number is 0 and
// ok() is false.
class VarintReader {
 public:
  explicit VarintReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }
  [[nodiscard]] std::span<const std::byte> rest() const { return bytes_; }

  std::uint64_t unsigned_number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) return fail();
      const auto byte = static_cast<std::uint64_t>(bytes_[0]);
      bytes_ = bytes_.subspan(1);
      if (shift == 63 && byte > 1) return fail();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }

  std::int64_t signed_number() {
    const std::uint64_t folded = unsigned_number();
    return static_cast<std::int64_t>(folded >> 1) ^ -static_cast<std::int64_t>(folded & 1);
  }

  // A number from `low` to `high`.
  std::int64_t number(std::int64_t low, std::int64_t high) {
    const std::uint64_t value = unsigned_number();
    const bool inside = value <= static_cast<std::uint64_t>(high) && static_cast<std::int64_t>(value) >= low;
    return inside ? static_cast<std::int64_t>(value) : static_cast<std::int64_t>(fail());
  }

 private:
  std::uint64_t fail() {
    ok_ = false;
    bytes_ = {};
    return 0;
  }

  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

}  // namespace spillway::extent
