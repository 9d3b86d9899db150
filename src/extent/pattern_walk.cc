#include <cassert>
#include <limits>

#include "extent/checked.h"
#include "extent/pattern_node.h"

namespace spillway::extent {
namespace {

using Node = Pattern::Node;
using Kind = Node::Kind;

// The longest run of blocks of `node` from `index` on that have one length and one distance. Looks no further
// than `wanted` bytes: a short access to a long list must not walk the list.
template <bool kEqualLengths>
StridedRun regular_run(const Node& node, std::int64_t base, std::int64_t index, std::int64_t wanted) {
  const std::int64_t* offsets = node.offsets.data() + index;
  const std::int64_t* starts = kEqualLengths ? nullptr : node.starts.data() + index;
  const std::int64_t length = kEqualLengths ? node.child->bytes : starts[1] - starts[0];
  const std::int64_t left = node.count - index;
  StridedRun run{base + offsets[0], length, 0, 1};
  const auto same_length = [&](std::int64_t i) { return kEqualLengths || starts[i + 1] - starts[i] == length; };
  if (left == 1 || length >= wanted || !same_length(1)) return run;
  run.stride = offsets[1] - offsets[0];
  std::int64_t n = 2;
  while (n < left && n * length < wanted && offsets[n] - offsets[n - 1] == run.stride && same_length(n)) ++n;
  run.count = n;
  return run;
}

}  // namespace

PatternWalk::PatternWalk(const Node* node, std::int64_t base, std::int64_t count, std::int64_t stride,
                         std::int64_t position, std::int64_t length)
    : remaining_(length) {
  if (length == 0) return;
  assert(node != nullptr && position >= 0 && length > 0);
  // Repetitions that continue the node's own are one level, so that they come out as one run.
  while (node->continued_by(stride)) {
    count = (Checked(count) * node->count).value_or_max();
    stride = node->stride;
    node = node->child.get();
  }
  const std::int64_t index = position / node->bytes;
  levels_.resize(static_cast<std::size_t>(node->depth) + 1);
  if (!node->is_block()) {
    levels_[depth_++] = {node, base, index, count, stride, 0, Form::step};
    descend_into_child(position % node->bytes);
  } else if (node->bytes == stride) {
    levels_[depth_++] = {node, base, 0, 1, stride, position + length, Form::step_leaf};
    skip_ = position;
  } else {
    levels_[depth_++] = {node, base, index, count, stride, node->bytes, Form::step_leaf};
    skip_ = position % node->bytes;
  }
}

StridedRun PatternWalk::next() {
  assert(remaining_ > 0);
  Level& leaf = levels_[depth_ - 1];
  const std::int64_t wanted = skip_ > 0 ? 1 : remaining_;
  StridedRun run;
  if (leaf.form == Form::step_leaf) {
    run = {leaf.base + leaf.index * leaf.stride, leaf.length, leaf.stride, leaf.count - leaf.index};
  } else if (leaf.form == Form::repeat_leaf) {
    run = regular_run<true>(*leaf.node, leaf.base, leaf.index, wanted);
  } else {
    run = regular_run<false>(*leaf.node, leaf.base, leaf.index, wanted);
  }
  if (skip_ > 0) {
    run = {run.offset + skip_, run.length - skip_, 0, 1};
    skip_ = 0;
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(run.length, run.count, &bytes) || bytes > remaining_) {
    run.count = remaining_ / run.length;
    if (run.count == 0) run = {run.offset, remaining_, 0, 1};
    bytes = run.bytes();
  }
  remaining_ -= bytes;
  leaf.index += run.count;
  if (leaf.index >= leaf.count && remaining_ > 0) advance();
  return run;
}

void PatternWalk::advance() {
  do {
    --depth_;
  } while (++levels_[depth_ - 1].index == levels_[depth_ - 1].count);
  const Level& level = levels_[depth_ - 1];
  if (level.form != Form::step || !level.node->is_leaf()) return descend_into_child(0);
  // The most frequent step by far: the leaf below stays what it is and only moves.
  Level& leaf = levels_[depth_++];
  leaf.base = level.base + level.index * level.stride;
  leaf.index = 0;
}

void PatternWalk::descend_into_child(std::int64_t position) {
  const Level& level = levels_[depth_ - 1];
  if (level.form == Form::step) {
    descend(level.node, level.base + level.index * level.stride, position);
  } else {
    descend(level.node->child_node(level.index), level.base + level.node->child_offset(level.index), position);
  }
}

// Enters the levels from `node` down to the leaf that holds the node's stream byte `position`.
void PatternWalk::descend(const Node* node, std::int64_t base, std::int64_t position) {
  for (;;) {
    Level& level = levels_[depth_++];
    if (node->is_block()) {
      level = {node, base, 0, 1, 0, node->bytes, Form::step_leaf};
      skip_ = position;
      return;
    }
    const std::int64_t index = position == 0 ? 0 : node->child_at(position);
    if (position != 0) position -= node->child_start(index);
    if (node->is_leaf()) {
      const bool step = node->kind == Kind::strided;
      const Form form = step ? Form::step_leaf : node->kind == Kind::repeat ? Form::repeat_leaf : Form::blocks_leaf;
      const std::int64_t length = node->child != nullptr ? node->child->bytes : 0;
      level = {node, base, index, node->count, node->stride, length, form};
      skip_ = position;
      return;
    }
    if (node->kind == Kind::strided) {
      level = {node->child.get(), base, index, node->count, node->stride, 0, Form::step};
    } else {
      level = {node, base, index, node->count, 0, 0, Form::list};
    }
    base += node->child_offset(index);
    node = node->child_node(index);
  }
}

PatternCursor::PatternCursor(const Pattern& pattern, std::int64_t tile_extent, std::int64_t position,
                             std::int64_t length)
    : pattern_(pattern),
      walk_(pattern.node(), pattern.first_offset(), std::numeric_limits<std::int64_t>::max(), tile_extent, position,
            length) {}

}  // namespace spillway::extent
