#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

namespace spillway::extent {

// A range of a file in bytes: [offset, offset + length).
struct Extent {
  std::int64_t offset = 0;
  std::int64_t length = 0;

  [[nodiscard]] std::int64_t end() const { return offset + length; }
  [[nodiscard]] bool empty() const { return length <= 0; }
  [[nodiscard]] bool overlaps(const Extent& other) const {
    return offset < other.end() && other.offset < end() && !empty() && !other.empty();
  }
  [[nodiscard]] bool contains(const Extent& other) const { return offset <= other.offset && other.end() <= end(); }
  friend bool operator==(const Extent&, const Extent&) = default;
};

// The common part; empty (length 0) when there is none.
[[nodiscard]] inline Extent intersection(const Extent& a, const Extent& b) {
  const std::int64_t begin = std::max(a.offset, b.offset);
  const std::int64_t end = std::min(a.end(), b.end());
  return {begin, std::max<std::int64_t>(0, end - begin)};
}

// `count` pieces of `length` bytes, `stride` bytes from the start of one to the start of the next.
// With count 1 the stride means nothing. In file order: stride >= length.
struct StridedRun {
  std::int64_t offset = 0;
  std::int64_t length = 0;
  std::int64_t stride = 0;
  std::int64_t count = 1;

  [[nodiscard]] std::int64_t bytes() const { return length * count; }
  [[nodiscard]] std::int64_t end() const { return offset + (count - 1) * stride + length; }
  friend bool operator==(const StridedRun&, const StridedRun&) = default;
};

// Sorted, disjoint, non-touching, non-empty extents: a set of file bytes in its only form.
class ExtentList {
 public:
  ExtentList() = default;
  // From extents in any order, possibly overlapping, touching or empty.  O(n log n).
  static ExtentList from_unsorted(std::vector<Extent> extents);

  // Appends an extent that begins at or after the begin of the last one; merges when they touch or overlap. Amortized O(1).
  void append(const Extent& extent) {
    if (extent.empty()) return;
    if (extents_.empty() || extent.offset > extents_.back().end()) {
      extents_.push_back(extent);
      return;
    }
    Extent& last = extents_.back();
    assert(extent.offset >= last.offset);
    last.length = std::max(last.end(), extent.end()) - last.offset;
  }

  [[nodiscard]] bool empty() const { return extents_.empty(); }
  [[nodiscard]] std::size_t size() const { return extents_.size(); }
  [[nodiscard]] const Extent& operator[](std::size_t i) const { return extents_[i]; }
  [[nodiscard]] auto begin() const { return extents_.begin(); }
  [[nodiscard]] auto end() const { return extents_.end(); }
  [[nodiscard]] std::int64_t bytes() const;  // O(n)
  // From the first to the last byte; empty when the list is.
  [[nodiscard]] Extent bounds() const;
  // Index of the first extent that ends after `offset`; size() when there is none.  O(log n).
  [[nodiscard]] std::size_t find(std::int64_t offset) const;
  [[nodiscard]] bool contains(const Extent& extent) const;  // O(log n)
  [[nodiscard]] bool overlaps(const Extent& extent) const;  // O(log n)

  // The part of this set inside `range`; this set without `other`; both together.
  [[nodiscard]] ExtentList clipped(const Extent& range) const;
  [[nodiscard]] ExtentList without(const ExtentList& other) const;
  [[nodiscard]] ExtentList united(const ExtentList& other) const;

  friend bool operator==(const ExtentList&, const ExtentList&) = default;

 private:
  std::vector<Extent> extents_;
};

// A position in an ExtentList of which the leading bytes have been dealt with.
struct RunCursor {
  const ExtentList* runs = nullptr;
  std::size_t index = 0;
  std::int64_t done = 0;  // bytes of runs[index]

  [[nodiscard]] bool at_end() const { return index == runs->size(); }
  [[nodiscard]] Extent current() const {
    const Extent& run = (*runs)[index];
    return {run.offset + done, run.length - done};
  }
  void advance(std::int64_t bytes) {  // bytes <= current().length
    done += bytes;
    if (done == (*runs)[index].length) {
      ++index;
      done = 0;
    }
  }
};

}  // namespace spillway::extent
