#include "extent/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <unordered_set>

#include "extent/checked.h"
#include "extent/pattern_node.h"

namespace spillway::extent {
namespace {

using Node = Pattern::Node;
using Kind = Node::Kind;

// Of nodes compared when a list looks for equal children; beyond, they count as different, which costs memory
// only.
constexpr std::int64_t kCompareMax = 1 << 16;

bool all_same(const std::vector<NodePtr>& nodes) {
  std::int64_t budget = kCompareMax;
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](const NodePtr& node) { return same_layout(*nodes[0], *node, budget); });
}

// The group length g such that offsets are g regular steps, again and again, each group equal to the first
// but for its place; 1 when there is no such g.
std::size_t regular_group(const std::vector<std::int64_t>& offsets) {
  const std::int64_t step = offsets[1] - offsets[0];
  std::size_t group = 2;
  while (group < offsets.size() && offsets[group] - offsets[group - 1] == step) ++group;
  if (offsets.size() % group != 0) return 1;
  for (std::size_t i = group; i < offsets.size(); ++i) {
    if (i % group != 0 && offsets[i] - offsets[i - 1] != step) return 1;
  }
  return group;
}

// Merges blocks that continue their predecessor and drops empty ones.
void merge_neighbours(std::vector<std::int64_t>& offsets, std::vector<std::int64_t>& lengths) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (lengths[i] <= 0) continue;
    const bool continues = kept > 0 && (Checked(offsets[kept - 1]) + lengths[kept - 1]).value_or_max() == offsets[i];
    if (continues && (Checked(lengths[kept - 1]) + lengths[i]).ok()) {
      lengths[kept - 1] += lengths[i];
    } else {
      offsets[kept] = offsets[i];
      lengths[kept++] = lengths[i];
    }
  }
  offsets.resize(kept);
  lengths.resize(kept);
}

// Makes the offsets relative to the first one, which is returned. False when they lie too far apart for 63
// bits.
bool make_relative(std::vector<std::int64_t>& offsets, std::int64_t& first) {
  const auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
  if (!(Checked(*high) - *low).ok()) return false;
  first = offsets[0];
  for (std::int64_t& offset : offsets) offset -= first;
  return true;
}

}  // namespace

Pattern Pattern::unrepresentable() {
  Pattern result;
  result.representable_ = false;
  return result;
}

Pattern Pattern::from_node(Node node, std::int64_t offset) {
  if (!node.derive() || !(Checked(offset) + node.low).ok() || !(Checked(offset) + node.high).ok()) {
    return unrepresentable();
  }
  return {std::make_shared<const Node>(std::move(node)), offset};
}

Pattern Pattern::block(std::int64_t offset, std::int64_t length) {
  if (length <= 0) return {};
  Node node;
  node.bytes = length;
  return from_node(std::move(node), offset);
}

Pattern Pattern::strided(const Pattern& child, std::int64_t count, std::int64_t stride) {
  if (!child.representable_ || child.empty() || count == 1) return child;
  if (count <= 0) return {};
  const Node& inner = *child.node_;
  if (inner.is_block() && inner.bytes == stride) {
    const Checked length = Checked(stride) * count;
    return length.ok() ? block(child.offset_, length.value()) : unrepresentable();
  }
  Node node;
  node.kind = Kind::strided;
  node.child = child.node_;
  node.count = count;
  node.stride = stride;
  if (inner.continued_by(stride)) {
    const Checked total = Checked(count) * inner.count;
    if (!total.ok()) return unrepresentable();
    node.child = inner.child;
    node.count = total.value();
    node.stride = inner.stride;
  }
  return from_node(std::move(node), child.offset_);
}

// `child`, which begins at 0, at each of the offsets. Peels off regular levels from the inside: the flat list
// of all rows of a 3-D block becomes strided of strided again.
Pattern Pattern::from_offsets(Pattern child, std::vector<std::int64_t> offsets) {
  if (offsets.empty()) return {};
  std::int64_t first = 0;
  if (!make_relative(offsets, first)) return unrepresentable();
  while (offsets.size() > 1) {
    const std::size_t group = regular_group(offsets);
    if (group == 1) break;
    child = strided(child, static_cast<std::int64_t>(group), offsets[1]);
    if (!child.representable_) return child;
    for (std::size_t i = 0; i * group < offsets.size(); ++i) offsets[i] = offsets[i * group];
    offsets.resize(offsets.size() / group);
  }
  if (offsets.size() == 1) return child.displaced(first);
  Node node;
  node.kind = Kind::repeat;
  node.child = child.node_;
  node.count = static_cast<std::int64_t>(offsets.size());
  offsets.shrink_to_fit();
  node.offsets = std::move(offsets);
  return from_node(std::move(node), first);
}

Pattern Pattern::from_blocks(std::vector<std::int64_t> offsets, std::vector<std::int64_t> lengths) {
  merge_neighbours(offsets, lengths);
  if (offsets.empty()) return {};
  const auto differs = [&](std::int64_t length) { return length != lengths[0]; };
  if (std::none_of(lengths.begin(), lengths.end(), differs))
    return from_offsets(block(0, lengths[0]), std::move(offsets));

  std::int64_t first = 0;
  if (!make_relative(offsets, first)) return unrepresentable();
  Node node;
  node.kind = Kind::blocks;
  node.count = static_cast<std::int64_t>(offsets.size());
  node.starts.reserve(offsets.size() + 1);
  node.starts.push_back(0);
  for (const std::int64_t length : lengths) {
    const Checked start = Checked(node.starts.back()) + length;
    if (!start.ok()) return unrepresentable();
    node.starts.push_back(start.value());
  }
  offsets.shrink_to_fit();
  node.offsets = std::move(offsets);
  return from_node(std::move(node), first);
}

Pattern Pattern::blocks(std::span<const std::int64_t> displacements, std::span<const std::int64_t> lengths) {
  assert(displacements.size() == lengths.size());
  return from_blocks({displacements.begin(), displacements.end()}, {lengths.begin(), lengths.end()});
}

Pattern Pattern::list(std::span<const std::int64_t> displacements, const Pattern& child) {
  if (!child.representable_ || child.empty()) return child;
  if (child.node_->is_block()) {
    // As blocks, so that neighbours merge.
    std::vector<std::int64_t> offsets(displacements.begin(), displacements.end());
    return from_blocks(std::move(offsets), std::vector<std::int64_t>(displacements.size(), child.bytes()))
        .displaced(child.offset_);
  }
  return from_offsets(Pattern(child.node_, 0), {displacements.begin(), displacements.end()}).displaced(child.offset_);
}

Pattern Pattern::list(std::span<const std::int64_t> displacements, std::span<const Pattern> children) {
  assert(displacements.size() == children.size());
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> lengths;  // of children that are blocks, as long as all are
  std::vector<NodePtr> nodes;
  bool all_blocks = true;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Checked offset = Checked(displacements[i]) + children[i].offset_;
    if (!children[i].representable_ || !offset.ok()) return unrepresentable();
    if (children[i].empty()) continue;
    all_blocks = all_blocks && children[i].node_->is_block();
    if (all_blocks) lengths.push_back(children[i].bytes());
    offsets.push_back(offset.value());
    nodes.push_back(children[i].node_);
  }
  if (all_blocks) return from_blocks(std::move(offsets), std::move(lengths));
  return from_nodes(std::move(offsets), std::move(nodes));
}

Pattern Pattern::from_nodes(std::vector<std::int64_t> offsets, std::vector<NodePtr> nodes) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool blocks = kept > 0 && nodes[i]->is_block() && nodes[kept - 1]->is_block();
    if (blocks && (Checked(offsets[kept - 1]) + nodes[kept - 1]->bytes).value_or_max() == offsets[i]) {
      const Pattern merged = block(0, (Checked(nodes[kept - 1]->bytes) + nodes[i]->bytes).value_or_max());
      nodes[kept - 1] = merged.node_;
    } else {
      offsets[kept] = offsets[i];
      nodes[kept++] = std::move(nodes[i]);
    }
  }
  offsets.resize(kept);
  nodes.resize(kept);
  if (all_same(nodes)) return from_offsets(Pattern(nodes[0], 0), std::move(offsets));

  std::int64_t first = 0;
  if (!make_relative(offsets, first)) return unrepresentable();
  Node node;
  node.kind = Kind::list;
  node.count = static_cast<std::int64_t>(kept);
  node.starts.push_back(0);
  for (const NodePtr& child : nodes) {
    const Checked start = Checked(node.starts.back()) + child->bytes;
    if (!start.ok()) return unrepresentable();
    node.starts.push_back(start.value());
  }
  node.offsets = std::move(offsets);
  node.children = std::move(nodes);
  return from_node(std::move(node), first);
}

Pattern Pattern::displaced(std::int64_t offset) const {
  if (node_ == nullptr) return *this;
  const Checked moved = Checked(offset_) + offset;
  const bool fits = moved.ok() && (moved + node_->low).ok() && (moved + node_->high).ok();
  return fits ? Pattern(node_, moved.value()) : unrepresentable();
}

std::int64_t Pattern::bytes() const { return node_ == nullptr ? 0 : node_->bytes; }

std::int64_t Pattern::piece_count() const { return node_ == nullptr ? 0 : node_->pieces; }

Extent Pattern::bounds() const {
  return node_ == nullptr ? Extent{} : Extent{offset_ + node_->low, node_->high - node_->low};
}

bool Pattern::contiguous() const { return node_ == nullptr || node_->is_block(); }

bool Pattern::sorted() const { return node_ == nullptr || node_->sorted; }

bool Pattern::sorted_disjoint() const { return node_ == nullptr || node_->sorted_disjoint; }

std::int64_t Pattern::bytes_below(std::int64_t offset) const {
  assert(sorted_disjoint());
  if (node_ == nullptr || offset <= offset_) return 0;
  // The difference fits once it is known not to lie beyond the end.
  if (offset >= offset_ + node_->high) return node_->bytes;
  std::int64_t below = 0;
  const Node* node = node_.get();
  for (std::int64_t rest = offset - offset_;;) {
    if (rest >= node->high) return below + node->bytes;
    if (node->is_block()) return below + rest;
    const std::int64_t i = node->child_below(rest);
    rest -= node->child_offset(i);
    below += node->child_start(i);
    if (node->kind == Kind::blocks) return below + std::min(rest, node->child_bytes(i));
    node = node->child_node(i);
  }
}

std::int64_t Pattern::offset_of(std::int64_t position) const {
  assert(position >= 0 && position < bytes());
  std::int64_t offset = offset_;
  const Node* node = node_.get();
  while (!node->is_block()) {
    const std::int64_t i = node->child_at(position);
    position -= node->child_start(i);
    offset += node->child_offset(i);
    node = node->child_node(i);
    if (node == nullptr) break;
  }
  return offset + position;
}

namespace {

void add_memory(const Node& node, std::unordered_set<const Node*>& seen, std::size_t& total) {
  if (!seen.insert(&node).second) return;
  constexpr std::size_t kControlBlock = 16;  // of make_shared: two counters and a table pointer
  total += sizeof(Node) + kControlBlock + (node.offsets.capacity() + node.starts.capacity()) * sizeof(std::int64_t) +
           node.children.capacity() * sizeof(NodePtr);
  if (node.child != nullptr) add_memory(*node.child, seen, total);
  for (const NodePtr& child : node.children) add_memory(*child, seen, total);
}

// Enough for any message; subtrees may be shared so often that the whole text would not fit into memory.
constexpr std::size_t kTextMax = 400;

void add_text(const Node& node, std::int64_t offset, std::string& text) {
  if (text.size() > kTextMax) return;
  auto out = std::back_inserter(text);
  if (node.is_block()) {
    fmt::format_to(out, "[{}, {})", offset, offset + node.bytes);
    return;
  }
  if (node.kind == Kind::strided) {
    fmt::format_to(out, "{} x {} of ", node.count, node.stride);
    return add_text(*node.child, offset, text);
  }
  text += '(';
  for (std::int64_t i = 0; i < node.count && text.size() <= kTextMax; ++i) {
    if (i > 0) text += ", ";
    const std::int64_t begin = offset + node.child_offset(i);
    if (node.kind == Kind::blocks) {
      fmt::format_to(out, "[{}, {})", begin, begin + node.child_bytes(i));
    } else {
      add_text(*node.child_node(i), begin, text);
    }
  }
  text += ')';
}

}  // namespace

std::size_t Pattern::memory_bytes() const {
  std::unordered_set<const Node*> seen;
  std::size_t total = 0;
  if (node_ != nullptr) add_memory(*node_, seen, total);
  return total;
}

std::string Pattern::to_string() const {
  if (!representable_) return "unrepresentable";
  std::string text;
  if (node_ == nullptr) return "empty";
  add_text(*node_, offset_, text);
  if (text.size() > kTextMax) text = text.substr(0, kTextMax) + "...";
  return text;
}

}  // namespace spillway::extent
