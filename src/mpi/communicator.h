#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "comm/shared_counter.h"
#include "journal/node.h"

namespace spillway::mpi {

// What is known about a communicator that files are opened on: its ranks, their nodes, and a private copy of it. Made once per
// communicator and kept as an attribute of it; its files share it.
// Threads: made under the program's own ordering of collective calls; then immutable, except the team.
class CommContext {
 public:
  // Collective over `comm`. Null when some rank cannot take part (it has no runtime): then on every rank.
  static std::shared_ptr<CommContext> get(MPI_Comm comm, journal::Node* node, std::uint32_t process, int* mpi_error);
  ~CommContext();
  CommContext(const CommContext&) = delete;
  CommContext& operator=(const CommContext&) = delete;

  [[nodiscard]] MPI_Comm comm() const { return comm_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return static_cast<int>(node_of_.size()); }
  [[nodiscard]] int node_count() const { return node_count_; }
  [[nodiscard]] const std::vector<int>& node_of() const { return node_of_; }
  [[nodiscard]] const std::vector<int>& node_ranks() const { return node_ranks_; }
  [[nodiscard]] int member() const { return member_; }
  [[nodiscard]] journal::Node& node() const { return *node_; }
  // By member: where its journal is, and whether it lives.
  [[nodiscard]] const std::vector<std::uint32_t>& node_processes() const { return node_processes_; }
  [[nodiscard]] comm::WaitHooks hooks() const;
  void progress() const;

  // Collective, through the context's own team where one node is all there is.
  Status allgatherv(std::span<const std::byte> mine, comm::Gathered& out);

 private:
  CommContext() = default;
  MPI_Comm comm_{};
  int rank_ = 0;
  int node_count_ = 0;
  std::vector<int> node_of_;
  std::vector<int> node_ranks_;
  std::vector<std::uint32_t> node_processes_;
  int member_ = 0;
  journal::Node* node_ = nullptr;
  std::uint64_t block_ = 0;
  std::unique_ptr<comm::Team> team_;
};

// What the ranks of one node share for one open file, in the node's arena.
struct HandleBlock {
  std::atomic<std::uint32_t> users;  // the last one gives the block back; acq_rel, so that it sees the others gone
  alignas(64) std::atomic<std::int64_t> shared_pointer;
  alignas(64) std::byte team[64];  // Team::block_bytes(members) from here on

  static std::size_t bytes(int members) { return offsetof(HandleBlock, team) + comm::Team::block_bytes(members); }
};

// The Communicator of one open file.
class MpiCommunicator final : public comm::Communicator {
 public:
  // `block` was made by the node's first rank with users = members, and is given back with this object.
  MpiCommunicator(std::shared_ptr<CommContext> context, std::uint64_t block);
  ~MpiCommunicator() override;

  [[nodiscard]] int rank() const override { return context_->rank(); }
  [[nodiscard]] int size() const override { return context_->size(); }
  [[nodiscard]] int node_count() const override { return context_->node_count(); }
  [[nodiscard]] int node_of(int rank) const override { return context_->node_of()[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::span<const int> node_ranks() const override { return context_->node_ranks(); }
  [[nodiscard]] comm::Team& node_team() override { return team_; }
  Status allgatherv(std::span<const std::byte> mine, comm::Gathered& out) override;
  Status barrier() override;
  Status exchange(std::span<const comm::SendMessage> sends, std::span<const comm::ReceiveMessage> receives) override;
  void progress() override { context_->progress(); }

  [[nodiscard]] std::uint64_t commit_word() const;
  // Collective.
  Result<std::unique_ptr<comm::SharedCounter>> make_counter();

 private:
  [[nodiscard]] HandleBlock& handle_block() const { return *static_cast<HandleBlock*>(context_->node().block(block_)); }

  std::shared_ptr<CommContext> context_;
  std::uint64_t block_;
  comm::Team team_;
};

}  // namespace spillway::mpi
