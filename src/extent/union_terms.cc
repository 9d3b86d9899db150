#include "extent/union_terms.h"

#include <algorithm>

namespace spillway::extent {
namespace {

using Node = Pattern::Node;
using Kind = Node::Kind;

// A list of plain blocks this short is as good as its blocks, which combine with everything.
constexpr std::int64_t kShortArray = 16;

std::int64_t array_begin(const Term& term) { return term.begin - term.node->child_offset(term.first); }

void add_block(std::int64_t begin, std::int64_t end, Terms& terms) { terms.push_back({.begin = begin, .end = end}); }

void add_repeated(const Node& node, std::int64_t begin, std::int64_t count, std::int64_t stride, Terms& terms) {
  if (count == 1) return add_whole(node, begin, terms);
  terms.push_back({.kind = Term::Kind::strided,
                   .begin = begin,
                   .end = begin + (count - 1) * stride + node.high,
                   .pieces = count * node.pieces,
                   .node = &node,
                   .count = count,
                   .stride = stride});
}

void add_array(const Node& node, std::int64_t begin, std::int64_t first, std::int64_t count, Terms& terms) {
  const std::int64_t last = first + count - 1;
  if (count <= kShortArray) {
    for (std::int64_t i = first; i <= last; ++i) {
      const std::int64_t offset = begin + node.child_offset(i);
      add_block(offset, offset + node.child_bytes(i), terms);
    }
    return;
  }
  terms.push_back({.kind = Term::Kind::array,
                   .begin = begin + node.child_offset(first),
                   .end = begin + node.child_offset(last) + node.child_bytes(last),
                   .pieces = count,
                   .node = &node,
                   .count = count,
                   .first = first});
}

// The part of `count` repetitions that lies inside the window; they overlap it.
void add_part_of_repeated(const Node& node, std::int64_t begin, std::int64_t count, std::int64_t stride,
                          const Extent& window, Terms& terms) {
  const std::int64_t before = std::max<std::int64_t>(0, window.offset - begin);
  std::int64_t first = std::min(before / stride, count - 1);
  std::int64_t last = std::min((window.end() - 1 - begin) / stride, count - 1);
  if (begin + first * stride < window.offset) {
    add_part(node, begin + first * stride, window, terms);
    ++first;
  }
  if (first > last) return;
  const bool cut = begin + last * stride + node.high > window.end();
  if (cut) --last;
  if (first <= last) add_repeated(node, begin + first * stride, last - first + 1, stride, terms);
  if (cut) add_part(node, begin + (last + 1) * stride, window, terms);
}

// The part of blocks [first, first + count) that lies inside the window; they overlap it.
void add_part_of_array(const Node& node, std::int64_t begin, std::int64_t first, std::int64_t count,
                       const Extent& window, Terms& terms) {
  const auto add_cut = [&](std::int64_t i) {
    const std::int64_t offset = begin + node.child_offset(i);
    const Extent inside = intersection({offset, node.child_bytes(i)}, window);
    if (!inside.empty()) add_block(inside.offset, inside.end(), terms);
  };
  std::int64_t last = std::min(node.child_below(window.end() - 1 - begin), first + count - 1);
  first = std::max(node.child_below(std::max<std::int64_t>(0, window.offset - begin)), first);
  add_cut(first);
  if (first == last) return;
  if (last - first > 1) add_array(node, begin, first + 1, last - first - 1, terms);
  add_cut(last);
}

}  // namespace

PatternWalk Term::walk() const {
  if (kind == Kind::strided) return {node, begin, count, stride, 0, count * node->bytes};
  if (kind == Kind::block) return {nullptr, 0, 0, 0, 0, 0};
  const std::int64_t start = node->child_start(first);
  return {node, array_begin(*this), 1, 0, start, node->child_start(first + count) - start};
}

void add_whole(const Node& node, std::int64_t begin, Terms& terms) {
  if (node.is_block()) return add_block(begin, begin + node.bytes, terms);
  if (node.kind == Kind::strided) return add_repeated(*node.child, begin, node.count, node.stride, terms);
  if (node.is_leaf()) return add_array(node, begin, 0, node.count, terms);
  for (std::int64_t i = 0; i < node.count; ++i) add_whole(*node.child_node(i), begin + node.child_offset(i), terms);
}

void add_part(const Node& node, std::int64_t begin, const Extent& window, Terms& terms) {
  const Extent bounds{begin, node.high};
  if (!bounds.overlaps(window)) return;
  if (window.contains(bounds)) return add_whole(node, begin, terms);
  if (node.is_block()) {
    const Extent inside = intersection(bounds, window);
    return add_block(inside.offset, inside.end(), terms);
  }
  if (node.kind == Kind::strided) {
    return add_part_of_repeated(*node.child, begin, node.count, node.stride, window, terms);
  }
  if (node.is_leaf()) return add_part_of_array(node, begin, 0, node.count, window, terms);
  const std::int64_t first = node.child_below(std::max<std::int64_t>(0, window.offset - begin));
  const std::int64_t last = node.child_below(window.end() - 1 - begin);
  for (std::int64_t i = first; i <= last; ++i) {
    add_part(*node.child_node(i), begin + node.child_offset(i), window, terms);
  }
}

void add_part(const Term& term, const Extent& window, Terms& terms) {
  const Extent bounds = term.bounds();
  if (!bounds.overlaps(window)) return;
  if (window.contains(bounds)) {
    terms.push_back(term);
  } else if (term.kind == Term::Kind::block) {
    const Extent inside = intersection(bounds, window);
    add_block(inside.offset, inside.end(), terms);
  } else if (term.kind == Term::Kind::strided) {
    add_part_of_repeated(*term.node, term.begin, term.count, term.stride, window, terms);
  } else {
    add_part_of_array(*term.node, array_begin(term), term.first, term.count, window, terms);
  }
}

}  // namespace spillway::extent
