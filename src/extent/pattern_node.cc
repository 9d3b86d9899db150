#include "extent/pattern_node.h"

#include <algorithm>

namespace spillway::extent {

using Node = Pattern::Node;
using Kind = Node::Kind;

bool Shape::of_block(std::int64_t length, Shape& result) {
  result = {.bytes = length, .pieces = 1, .high = length, .last_end = length};
  return length > 0;
}

bool Shape::of_repetition(const Shape& child, std::int64_t count, std::int64_t stride, Shape& result) {
  const Checked bytes = Checked(child.bytes) * count;
  const Checked last = Checked(stride) * (count - 1);
  const Checked last_low = last + child.low;
  const Checked last_high = last + child.high;
  if (!bytes.ok() || !last_low.ok() || !last_high.ok()) return false;
  result.bytes = bytes.value();
  result.pieces = child.pieces * count;  // never more than bytes
  result.low = std::min(child.low, last_low.value());
  result.high = std::max(child.high, last_high.value());
  result.last_begin = last.value() + child.last_begin;
  result.last_end = last.value() + child.last_end;
  result.sorted = child.sorted && child.last_begin <= stride;
  result.sorted_disjoint = child.sorted_disjoint && child.last_end <= stride;
  return (Checked(result.high) - result.low).ok();
}

bool Shape::append(std::int64_t offset, const Shape& child) {
  const Checked total = Checked(bytes) + child.bytes;
  const Checked child_low = Checked(offset) + child.low;
  const Checked child_high = Checked(offset) + child.high;
  if (!total.ok() || !child_low.ok() || !child_high.ok()) return false;
  const bool first = pieces == 0;
  sorted = child.sorted && (first || (sorted && last_begin <= offset));
  sorted_disjoint = child.sorted_disjoint && (first || (sorted_disjoint && last_end <= offset));
  low = first ? child_low.value() : std::min(low, child_low.value());
  high = first ? child_high.value() : std::max(high, child_high.value());
  bytes = total.value();
  pieces += child.pieces;
  last_begin = offset + child.last_begin;
  last_end = offset + child.last_end;
  return (Checked(high) - low).ok();
}

bool Node::derive() {
  Shape shape;
  bool fits = true;
  int below = 0;
  switch (kind) {
    case Kind::block:
      fits = Shape::of_block(bytes, shape);
      break;
    case Kind::strided:
      fits = Shape::of_repetition(*child, count, stride, shape);
      below = child->depth;
      break;
    case Kind::repeat:
      for (const std::int64_t offset : offsets) fits = fits && shape.append(offset, *child);
      below = child->depth;
      break;
    case Kind::blocks:
      for (std::size_t i = 0; fits && i < offsets.size(); ++i) {
        Shape block;
        fits = Shape::of_block(starts[i + 1] - starts[i], block) && shape.append(offsets[i], block);
      }
      break;
    case Kind::list:
      for (std::size_t i = 0; fits && i < offsets.size(); ++i) {
        fits = shape.append(offsets[i], *children[i]);
        below = std::max(below, children[i]->depth);
      }
      break;
  }
  static_cast<Shape&>(*this) = shape;
  depth = below + 1;
  return fits && depth <= kDepthMax;
}

std::int64_t Node::child_at(std::int64_t position) const {
  if (child != nullptr) return position / child->bytes;
  return std::upper_bound(starts.begin(), starts.end(), position) - starts.begin() - 1;
}

std::int64_t Node::child_below(std::int64_t offset) const {
  if (kind == Kind::strided) return std::min(offset / stride, count - 1);
  return std::upper_bound(offsets.begin(), offsets.end(), offset) - offsets.begin() - 1;
}

bool same_layout(const Node& a, const Node& b, std::int64_t& budget) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.bytes != b.bytes || a.pieces != b.pieces || a.count != b.count || a.stride != b.stride) {
    return false;
  }
  budget -= 1 + static_cast<std::int64_t>(a.offsets.size());
  if (budget < 0 || a.offsets != b.offsets || a.starts != b.starts) return false;
  if (a.child != nullptr && !same_layout(*a.child, *b.child, budget)) return false;
  for (std::size_t i = 0; i < a.children.size(); ++i) {
    if (!same_layout(*a.children[i], *b.children[i], budget)) return false;
  }
  return true;
}

}  // namespace spillway::extent
