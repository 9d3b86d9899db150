// The byte form of a Pattern, as it travels between the processes of one job. All numbers are varints
// (varint.h).
//
//   version (1), number of nodes, nodes ..., and, unless there are none, the offset of stream byte 0 (signed)
//
// Children stand before their parents; the last node is the root. A node names its children by their distance
// back in the sequence, so a subtree that is shared stands there once. By kind:
//
//   0 block    bytes
//   1 strided  child, count, stride (signed)
//   2 repeat   child, count, then for each but the first: offset less that of the one before (signed)
//   3 blocks   count, length of the first, then for each other: begin less the end of the one before
//   (signed), length 4 list     count, first child, then for each other: offset less that of the one before
//   (signed), child

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "extent/checked.h"
#include "extent/pattern_node.h"
#include "extent/varint.h"

namespace spillway::extent {
namespace {

using Node = Pattern::Node;
using Kind = Node::Kind;

constexpr std::uint64_t kVersion = 1;
constexpr std::int64_t kNumberMax = std::numeric_limits<std::int64_t>::max();

class Writer {
 public:
  void add(const Node& node) {
    if (index_.contains(&node)) return;
    if (node.child != nullptr) add(*node.child);
    for (const NodePtr& child : node.children) add(*child);
    put(node);
    index_.emplace(&node, index_.size());
  }

  [[nodiscard]] std::size_t nodes() const { return index_.size(); }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void put_number(std::int64_t value) { put_varint(bytes_, static_cast<std::uint64_t>(value)); }
  void put_child(const NodePtr& child) { put_varint(bytes_, index_.size() - index_.at(child.get())); }

  void put(const Node& node) {
    put_varint(bytes_, static_cast<std::uint64_t>(node.kind));
    if (node.is_block()) return put_number(node.bytes);
    if (node.child != nullptr) put_child(node.child);
    put_number(node.count);
    if (node.kind == Kind::strided) return put_signed(bytes_, node.stride);
    for (std::size_t i = 0; i < node.offsets.size(); ++i) {
      const std::int64_t length = node.starts.empty() ? 0 : node.starts[i + 1] - node.starts[i];
      if (i > 0) put_signed(bytes_, node.offsets[i] - expected_);
      expected_ = node.offsets[i] + (node.kind == Kind::blocks ? length : 0);
      if (node.kind == Kind::blocks) put_number(length);
      if (node.kind == Kind::list) put_child(node.children[i]);
    }
  }

  std::unordered_map<const Node*, std::size_t> index_;
  std::int64_t expected_ = 0;  // the offset that the next difference is taken from
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : in_(bytes) {}

  // Null when the bytes are not well-formed. Every node costs at least two bytes, which bounds what is
  // allocated.
  NodePtr read_tree(std::int64_t nodes) {
    for (std::int64_t i = 0; i < nodes; ++i) {
      Node node;
      if (!read_node(node) || !in_.ok() || !node.derive()) return nullptr;
      nodes_.push_back(std::make_shared<const Node>(std::move(node)));
      used_.push_back(false);
    }
    // Every node but the root is part of another one.
    if (std::count(used_.begin(), used_.end(), false) != 1) return nullptr;
    return nodes_.back();
  }

  VarintReader& numbers() { return in_; }

 private:
  NodePtr read_child() {
    const std::int64_t back = in_.number(1, static_cast<std::int64_t>(nodes_.size()));
    if (!in_.ok()) return nullptr;
    const std::size_t i = nodes_.size() - static_cast<std::size_t>(back);
    used_[i] = true;
    return nodes_[i];
  }

  bool read_node(Node& node) {
    node.kind = static_cast<Kind>(in_.number(0, static_cast<std::int64_t>(Kind::list)));
    if (node.is_block()) {
      node.bytes = in_.number(1, kNumberMax);
      return in_.ok();
    }
    const bool one_child = node.kind == Kind::strided || node.kind == Kind::repeat;
    if (one_child) node.child = read_child();
    if (one_child && node.child == nullptr) return false;
    node.count = in_.number(2, node.kind == Kind::strided ? kNumberMax : static_cast<std::int64_t>(in_.left()) + 1);
    if (node.kind == Kind::strided) {
      node.stride = in_.signed_number();
      return in_.ok();
    }
    return in_.ok() && read_arrays(node);
  }

  bool read_arrays(Node& node) {
    Checked expected = 0;
    Checked start = 0;
    if (node.kind != Kind::repeat) node.starts.push_back(0);
    for (std::int64_t i = 0; i < node.count && in_.ok(); ++i) {
      const Checked offset = i == 0 ? 0 : expected + in_.signed_number();
      node.offsets.push_back(offset.value());
      expected = offset;
      if (node.kind == Kind::blocks) {
        const std::int64_t length = in_.number(1, kNumberMax);
        expected = expected + length;
        start = start + length;
      } else if (node.kind == Kind::list) {
        node.children.push_back(read_child());
        if (node.children.back() == nullptr) return false;
        start = start + node.children.back()->bytes;
      }
      if (node.kind != Kind::repeat) node.starts.push_back(start.value());
      if (!offset.ok() || !expected.ok() || !start.ok()) return false;
    }
    return in_.ok();
  }

  VarintReader in_;
  std::vector<NodePtr> nodes_;
  std::vector<bool> used_;
};

}  // namespace

void Pattern::serialize(std::vector<std::byte>& out) const {
  Writer writer;
  if (node_ != nullptr) writer.add(*node_);
  put_varint(out, kVersion);
  put_varint(out, writer.nodes());
  out.insert(out.end(), writer.bytes().begin(), writer.bytes().end());
  if (node_ != nullptr) put_signed(out, offset_);
}

Result<Pattern> Pattern::parse(std::span<const std::byte> bytes) {
  const auto refuse = [](std::string_view why) {
    return Status(Code::corrupt, fmt::format("description of a datatype from another process: {}", why));
  };
  Reader reader(bytes);
  VarintReader& numbers = reader.numbers();
  if (numbers.unsigned_number() != kVersion) return refuse("unknown version");
  const std::int64_t nodes = numbers.number(0, static_cast<std::int64_t>(bytes.size()));
  Pattern result;
  if (nodes > 0) {
    result.node_ = reader.read_tree(nodes);
    if (result.node_ == nullptr) return refuse("not a well-formed tree");
    result = result.displaced(numbers.signed_number());
  }
  if (!numbers.ok() || numbers.left() > 0) return refuse("wrong length");
  if (!result.representable()) return refuse("offset out of range");
  return result;
}

}  // namespace spillway::extent
