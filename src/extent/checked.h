#pragma once

#include <cstdint>
#include <limits>

namespace spillway::extent {

// A 64-bit sum or product that remembers whether any step of it overflowed. For numbers that come from
// outside: a user's datatype, a message.
class Checked {
 public:
  constexpr Checked(std::int64_t value) : value_(value) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] constexpr bool ok() const { return ok_; }
  [[nodiscard]] constexpr std::int64_t value() const { return value_; }  // meaningless unless ok()
  [[nodiscard]] constexpr std::int64_t value_or_max() const {
    return ok_ ? value_ : std::numeric_limits<std::int64_t>::max();
  }

  friend constexpr Checked operator+(Checked a, Checked b) {
    Checked sum = 0;
    sum.ok_ = !__builtin_add_overflow(a.value_, b.value_, &sum.value_) && a.ok_ && b.ok_;
    return sum;
  }
  friend constexpr Checked operator-(Checked a, Checked b) {
    Checked difference = 0;
    difference.ok_ = !__builtin_sub_overflow(a.value_, b.value_, &difference.value_) && a.ok_ && b.ok_;
    return difference;
  }
  friend constexpr Checked operator*(Checked a, Checked b) {
    Checked product = 0;
    product.ok_ = !__builtin_mul_overflow(a.value_, b.value_, &product.value_) && a.ok_ && b.ok_;
    return product;
  }

 private:
  std::int64_t value_;
  bool ok_ = true;
};

}  // namespace spillway::extent
