#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "collective/collective_io.h"
#include "collective/test_memory.h"
#include "comm/thread_comm.h"
#include "view/file_view.h"

// For tests only: N ranks as threads over the plain memory of test_memory.h.
namespace spillway::collective {

class MemoryLocalIo final : public LocalIo {
 public:
  explicit MemoryLocalIo(const MemoryPlace& place) : place_(place) {}
  bool promises = false;  // that no write fails
  bool held = false;
  Fault write_fault, read_fault, end_fault, flush_fault;

  Status write(const Call& call) override {
    if (Status status = write_fault.next("local write"); !status) return status;
    view::MoveCursor cursor(*call.view, *call.memory, call.range.position, call.range);
    while (!cursor.done()) {
      const view::Move move = cursor.next();
      for (std::int64_t i = 0; i < move.count; ++i) {
        place_.write(move.file_offset + i * move.file_stride,
                     {move.memory + i * move.memory_stride, static_cast<std::size_t>(move.length)});
      }
    }
    return {};
  }
  bool hold(const Call&) override {
    EXPECT_FALSE(held) << "held twice";
    held = promises;
    return held;
  }
  void release() override {
    EXPECT_TRUE(held) << "released what was not held";
    held = false;
  }
  Result<std::int64_t> read(const Call& call, std::int64_t end) override {
    if (Status status = read_fault.next("local read"); !status) return status;
    std::vector<std::byte> file = seen_from(place_.file, place_.node);
    file.resize(static_cast<std::size_t>(std::max(end, static_cast<std::int64_t>(file.size()))));
    // A view whose pieces overlap is only ever read where the file is long enough.
    const view::ViewRange range =
        call.view->sorted_disjoint() ? view::clip(*call.view, call.range, {0, end}) : call.range;
    if (range.length == 0) return std::int64_t{0};
    view::MoveCursor cursor(*call.view, *call.memory, call.range.position, range);
    while (!cursor.done()) {
      const view::Move move = cursor.next();
      for (std::int64_t i = 0; i < move.count; ++i) {
        std::memcpy(move.memory + i * move.memory_stride, file.data() + move.file_offset + i * move.file_stride,
                    static_cast<std::size_t>(move.length));
      }
    }
    return range.length;
  }
  Result<std::int64_t> file_end() override {
    if (Status status = end_fault.next("size"); !status) return status;
    return static_cast<std::int64_t>(seen_from(place_.file, place_.node).size());
  }
  extent::Extent pending_hull() override {
    std::vector<extent::Extent> mine;
    for (const MemoryNode::Write& write : place_.node.pending()) {
      if (write.owner == place_.rank) mine.push_back({write.offset, static_cast<std::int64_t>(write.bytes.size())});
    }
    return extent::ExtentList::from_unsorted(std::move(mine)).bounds();
  }
  Status flush(const extent::Extent&) override {
    if (Status status = flush_fault.next("flush"); !status) return status;
    place_.node.flush(place_.rank, place_.file);
    return {};
  }

 private:
  const MemoryPlace& place_;
};

struct RankShape {
  int nodes = 1;
  int ranks_per_node = 1;
  bool staging = false;
  std::int64_t round_bytes = 1 << 20;
  std::int64_t piece_bytes = 1 << 20;
};

// The ranks' file and nodes; they stay from one run() to the next.
class MemoryRanks {
 public:
  explicit MemoryRanks(const RankShape& shape) : shape_(shape), nodes_(static_cast<std::size_t>(shape.nodes)) {}
  ~MemoryRanks() {
    for (const MemoryNode& node : nodes_) EXPECT_TRUE(node.empty()) << "pieces were left behind";
  }
  MemoryRanks(const MemoryRanks&) = delete;
  MemoryRanks& operator=(const MemoryRanks&) = delete;

  [[nodiscard]] int ranks() const { return shape_.nodes * shape_.ranks_per_node; }
  // Dealt in turn, so that the ranks of a node are not neighbours.
  [[nodiscard]] std::vector<int> node_of() const {
    std::vector<int> nodes;
    for (int rank = 0; rank < ranks(); ++rank) nodes.push_back(rank % shape_.nodes);
    return nodes;
  }

  // One rank's part, with the faults that a test sets before its calls.
  struct Rank {
    Rank(comm::Communicator& comm_in, const MemoryPlace& place_in, const RankShape& shape)
        : comm(comm_in),
          place(place_in),
          local(place),
          write_landing(place, shape.round_bytes, shape.piece_bytes),
          read_landing(place, shape.round_bytes, shape.piece_bytes),
          io({comm, local, write_landing, read_landing}) {}
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;
    comm::Communicator& comm;
    MemoryPlace place;
    MemoryLocalIo local;
    MemoryWriteLanding write_landing;
    MemoryReadLanding read_landing;
    CollectiveIo io;
  };
  // `wrap` may put something between the ranks and their communicator.
  using Wrap = std::function<std::unique_ptr<comm::Communicator>(comm::Communicator&)>;
  void run(const std::function<void(Rank&)>& body, const Wrap& wrap = nullptr) {
    comm::ThreadWorld world(node_of());
    comm::run_ranks(world, [&](comm::Communicator& comm) {
      const std::unique_ptr<comm::Communicator> wrapped = wrap ? wrap(comm) : nullptr;
      MemoryNode& node = nodes_[static_cast<std::size_t>(comm.rank() % shape_.nodes)];
      Rank rank(wrapped ? *wrapped : comm, {file_, node, comm.rank(), shape_.staging}, shape_);
      body(rank);
    });
  }

  // What a program would find after everything has been drained. Two nodes never hold the same byte.
  [[nodiscard]] std::vector<std::byte> content() {
    std::vector<std::byte> bytes = file_.content();
    std::vector<int> holder;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      for (const MemoryNode::Write& write : nodes_[node].pending()) {
        const auto begin = static_cast<std::size_t>(write.offset);
        bytes.resize(std::max(bytes.size(), begin + write.bytes.size()));
        holder.resize(bytes.size(), -1);
        std::memcpy(bytes.data() + begin, write.bytes.data(), write.bytes.size());
        for (std::size_t i = begin; i < begin + write.bytes.size(); ++i) {
          EXPECT_TRUE(holder[i] == -1 || holder[i] == static_cast<int>(node)) << "byte " << i;
          holder[i] = static_cast<int>(node);
        }
      }
    }
    return bytes;
  }
  [[nodiscard]] MemoryFile& file() { return file_; }

 private:
  RankShape shape_;
  MemoryFile file_;
  std::vector<MemoryNode> nodes_;
};

}  // namespace spillway::collective
