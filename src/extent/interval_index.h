#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

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

  // As erase, calling removed(Entry) for each part that is cut away and for which matches(value) held. Parts whose value
  // does not match stay. Neither may call back into the index.
  template <typename Removed, typename Matches>
  void erase_if(const Extent& extent, Removed&& removed, Matches&& matches) {
    if (extent.empty()) return;
    auto it = first_ending_after(extent.offset);
    while (it != entries_.end() && it->first < extent.end()) {
      it = matches(it->second.value) ? cut(it, extent, removed) : std::next(it);
    }
  }

  template <typename Removed>
  void erase(const Extent& extent, Removed&& removed) {
    erase_if(extent, std::forward<Removed>(removed), [](const Value&) { return true; });
  }

  // Calls visit(Entry) for the parts of entries inside `extent`, in file order.
  template <typename Visit>
  void for_each(const Extent& extent, Visit&& visit) const {
    if (extent.empty()) return;
    for (auto it = first_ending_after(extent.offset); it != entries_.end() && it->first < extent.end(); ++it) {
      visit(part(*it, intersection({it->first, it->second.length}, extent)));
    }
  }

  [[nodiscard]] bool overlaps(const Extent& extent) const {
    if (extent.empty()) return false;
    const auto it = first_ending_after(extent.offset);
    return it != entries_.end() && it->first < extent.end();
  }

  // One past the last covered byte; 0 when empty.
  [[nodiscard]] std::int64_t end_offset() const {
    return entries_.empty() ? 0 : entries_.rbegin()->first + entries_.rbegin()->second.length;
  }

 private:
  struct Stored {
    std::int64_t length;
    Value value;
  };
  using Entries = std::map<std::int64_t, Stored>;  // by offset; disjoint

  [[nodiscard]] auto first_ending_after(std::int64_t offset) const { return first_ending_after(entries_, offset); }
  [[nodiscard]] auto first_ending_after(std::int64_t offset) { return first_ending_after(entries_, offset); }
  template <typename Map>
  static auto first_ending_after(Map& entries, std::int64_t offset) {
    auto it = entries.upper_bound(offset);
    if (it == entries.begin()) return it;
    const auto before = std::prev(it);
    return before->first + before->second.length > offset ? before : it;
  }

  // The part of a stored entry that covers `extent`, which lies inside it.
  [[nodiscard]] Entry part(const typename Entries::value_type& stored, const Extent& extent) const {
    const std::int64_t skipped = extent.offset - stored.first;
    return {extent, skipped == 0 ? stored.second.value : shift_(stored.second.value, skipped)};
  }

  // Removes `extent` from the entry at `it`, which overlaps it; returns the entry that follows.
  template <typename Removed>
  auto cut(typename Entries::iterator it, const Extent& extent, Removed& removed) {
    const Extent whole{it->first, it->second.length};
    const Extent gone = intersection(whole, extent);
    removed(part(*it, gone));
    auto next = std::next(it);
    if (gone.end() < whole.end()) {
      const Extent tail{gone.end(), whole.end() - gone.end()};
      next = entries_.emplace_hint(next, tail.offset, Stored{tail.length, part(*it, tail).value});
    }
    if (gone.offset > whole.offset) {
      it->second.length = gone.offset - whole.offset;
    } else {
      entries_.erase(it);
    }
    return next;
  }

  Entries entries_;
  Shift shift_;
};

}  // namespace spillway::extent
