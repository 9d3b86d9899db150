#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "extent/extent.h"

namespace spillway::extent {

// Which value covers which file bytes, the newest winning: inserting over older entries cuts them back. The journal's index:
// a read asks for a range and gets, in order, the pieces that are pending and where their bytes lie.
// `Value` is copied when an entry is cut in two; `shift(value, bytes)` gives the value for the part that begins `bytes` later
// (a journal position moves with the cut; a plain tag does not).
// Cost: insert O(log n + entries replaced), lookup O(log n + entries found), memory O(entries).
// Threads: one, or guarded by its owner.
template <typename Value, typename Shift>
class IntervalIndex {
 public:
  struct Entry {
    Extent extent;
    Value value;
  };

  explicit IntervalIndex(Shift shift = Shift()) : shift_(std::move(shift)) {}

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

  // `value` now covers `extent`; returns nothing of what it replaced.
  void insert(const Extent& extent, const Value& value) {
    if (extent.empty()) return;
    erase(extent);
    entries_.emplace(extent.offset, Stored{extent.length, value});
  }

  // As insert, and calls replaced(Entry) for each part of an older entry that is cut away.
  template <typename Replaced>
  void insert(const Extent& extent, const Value& value, Replaced&& replaced) {
    if (extent.empty()) return;
    erase(extent, std::forward<Replaced>(replaced));
    entries_.emplace(extent.offset, Stored{extent.length, value});
  }

  // Forgets what is known about `extent`.
  void erase(const Extent& extent) {
    erase(extent, [](const Entry&) {});
  }

  // As erase, calling removed(Entry) for each part that is cut away and for which matches(value) held. Parts whose value does
  // not match stay.
  template <typename Removed, typename Matches>
  void erase_if(const Extent& extent, Removed&& removed, Matches&& matches);

  template <typename Removed>
  void erase(const Extent& extent, Removed&& removed) {
    erase_if(extent, std::forward<Removed>(removed), [](const Value&) { return true; });
  }

  // Calls visit(Entry) for the parts of entries inside `extent`, in file order.
  template <typename Visit>
  void for_each(const Extent& extent, Visit&& visit) const;

  [[nodiscard]] bool overlaps(const Extent& extent) const;

  // One past the last covered byte; 0 when empty.
  [[nodiscard]] std::int64_t end_offset() const {
    return entries_.empty() ? 0 : entries_.rbegin()->first + entries_.rbegin()->second.length;
  }

 private:
  struct Stored {
    std::int64_t length;
    Value value;
  };
  std::map<std::int64_t, Stored> entries_;
  Shift shift_;
};

}  // namespace spillway::extent
