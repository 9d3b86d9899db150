#include "extent/extent.h"

#include <utility>

namespace spillway::extent {

ExtentList ExtentList::from_unsorted(std::vector<Extent> extents) {
  const auto by_offset = [](const Extent& a, const Extent& b) { return a.offset < b.offset; };
  if (!std::is_sorted(extents.begin(), extents.end(), by_offset)) {
    std::sort(extents.begin(), extents.end(), by_offset);
  }
  // Coalesced in place: the list never grows past the place that is read next.
  std::size_t kept = 0;
  for (const Extent& extent : extents) {
    if (extent.empty()) continue;
    if (kept > 0 && extent.offset <= extents[kept - 1].end()) {
      Extent& last = extents[kept - 1];
      last.length = std::max(last.end(), extent.end()) - last.offset;
    } else {
      extents[kept++] = extent;
    }
  }
  extents.resize(kept);
  ExtentList list;
  list.extents_ = std::move(extents);
  return list;
}

std::int64_t ExtentList::bytes() const {
  std::int64_t total = 0;
  for (const Extent& extent : extents_) total += extent.length;
  return total;
}

Extent ExtentList::bounds() const {
  if (extents_.empty()) return {};
  return {extents_.front().offset, extents_.back().end() - extents_.front().offset};
}

std::size_t ExtentList::find(std::int64_t offset) const {
  const auto ends_after = [offset](const Extent& extent) { return extent.end() <= offset; };
  const auto it = std::partition_point(extents_.begin(), extents_.end(), ends_after);
  return static_cast<std::size_t>(it - extents_.begin());
}

bool ExtentList::contains(const Extent& extent) const {
  if (extent.empty()) return true;
  const std::size_t i = find(extent.offset);
  return i < extents_.size() && extents_[i].contains(extent);
}

bool ExtentList::overlaps(const Extent& extent) const {
  if (extent.empty()) return false;
  const std::size_t i = find(extent.offset);
  return i < extents_.size() && extents_[i].overlaps(extent);
}

ExtentList ExtentList::clipped(const Extent& range) const {
  ExtentList result;
  for (std::size_t i = find(range.offset); i < extents_.size() && extents_[i].offset < range.end(); ++i) {
    result.append(intersection(extents_[i], range));
  }
  return result;
}

ExtentList ExtentList::without(const ExtentList& other) const {
  ExtentList result;
  std::size_t j = 0;
  for (Extent rest : extents_) {
    while (j < other.size() && other[j].end() <= rest.offset) ++j;
    // `j` stays at the last hole-maker that was looked at: it may reach into the next extent as well.
    for (std::size_t k = j; k < other.size() && other[k].offset < rest.end(); ++k) {
      result.append({rest.offset, other[k].offset - rest.offset});
      rest = {other[k].end(), std::max<std::int64_t>(0, rest.end() - other[k].end())};
    }
    result.append(rest);
  }
  return result;
}

ExtentList ExtentList::united(const ExtentList& other) const {
  ExtentList result;
  result.extents_.reserve(extents_.size() + other.extents_.size());
  auto a = extents_.begin();
  auto b = other.extents_.begin();
  while (a != extents_.end() || b != other.extents_.end()) {
    const bool take_a = b == other.extents_.end() || (a != extents_.end() && a->offset <= b->offset);
    result.append(take_a ? *a++ : *b++);
  }
  return result;
}

}  // namespace spillway::extent
