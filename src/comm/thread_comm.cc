#include "comm/thread_comm.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

namespace spillway::comm {

ThreadWorld::ThreadWorld(std::vector<int> node_of_rank, std::vector<void*> team_blocks)
    : node_of_rank_(std::move(node_of_rank)), team_blocks_(std::move(team_blocks)) {
  node_count_ = *std::max_element(node_of_rank_.begin(), node_of_rank_.end()) + 1;
  for (int node = static_cast<int>(team_blocks_.size()); node < node_count_; ++node) {
    const auto members = std::count(node_of_rank_.begin(), node_of_rank_.end(), node);
    const std::size_t bytes = Team::block_bytes(static_cast<int>(members)) + 64;
    own_blocks_.push_back(std::make_unique<std::byte[]>(bytes));
    void* block = own_blocks_.back().get();
    std::size_t space = bytes;
    team_blocks_.push_back(std::align(64, bytes - 64, block, space));
  }
}

ThreadWorld::~ThreadWorld() = default;

void ThreadWorld::leave(int rank) {
  {
    base::MutexLock lock(mutex_);
    left_.resize(node_of_rank_.size());
    left_[static_cast<std::size_t>(rank)] = true;
  }
  changed_.notify_all();
}

void ThreadWorld::start() {
  base::MutexLock lock(mutex_);
  left_.assign(node_of_rank_.size(), false);
}

bool ThreadWorld::someone_left() {
  base::MutexLock lock(mutex_);
  return std::find(left_.begin(), left_.end(), true) != left_.end();
}

bool ThreadWorld::wait() {
  // Long enough for a message that was sent before its sender left.
  if (changed_.wait_for(mutex_, std::chrono::seconds(1))) return true;
  return std::find(left_.begin(), left_.end(), true) == left_.end();
}

namespace {

Status left_alone() { return Status(Code::peer_lost, "another rank has left"); }

}  // namespace

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(ThreadWorld& world, int rank) : world_(world), rank_(rank) {
    const int node = world.node_of_rank_[static_cast<std::size_t>(rank)];
    for (int other = 0; other < world.size(); ++other) {
      if (world.node_of_rank_[static_cast<std::size_t>(other)] == node) node_ranks_.push_back(other);
    }
    const auto me = std::find(node_ranks_.begin(), node_ranks_.end(), rank) - node_ranks_.begin();
    team_ = std::make_unique<Team>(world.team_blocks_[static_cast<std::size_t>(node)], static_cast<int>(me),
                                   static_cast<int>(node_ranks_.size()), hooks());
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return world_.size(); }
  [[nodiscard]] int node_count() const override { return world_.node_count_; }
  [[nodiscard]] int node_of(int rank) const override { return world_.node_of_rank_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::span<const int> node_ranks() const override { return node_ranks_; }
  [[nodiscard]] Team& node_team() override { return *team_; }

  Status allgatherv(std::span<const std::byte> mine, Gathered& out) override {
    if (world_.node_count_ == 1) return team_->allgatherv(mine, out);
    std::shared_ptr<Gathered> result;
    {
      base::MutexLock lock(world_.mutex_);
      auto& gathering = world_.gathering_;
      if (gathering.arrived == 0) gathering.parts.assign(static_cast<std::size_t>(size()), {});
      gathering.parts[static_cast<std::size_t>(rank_)].assign(mine.begin(), mine.end());
      if (++gathering.arrived == size()) {
        gathering.result = std::make_shared<Gathered>();
        for (const auto& part : gathering.parts) gathering.result->append(part);
        gathering.arrived = 0;
        ++gathering.generation;
        world_.changed_.notify_all();
      } else {
        const std::uint64_t generation = gathering.generation;
        while (gathering.generation == generation) {
          if (!world_.wait()) return left_alone();
        }
      }
      // Still this call's: the next all-gather cannot complete without this rank.
      result = gathering.result;
    }
    out = *result;
    return {};
  }

  Status barrier() override {
    if (world_.node_count_ == 1) return team_->barrier();
    Gathered nothing;
    return allgatherv({}, nothing);
  }

  Status exchange(std::span<const SendMessage> sends, std::span<const ReceiveMessage> receives) override {
    base::MutexLock lock(world_.mutex_);
    for (const SendMessage& send : sends) {
      world_.in_transit_[{rank_, send.peer}].emplace_back(send.bytes.begin(), send.bytes.end());
    }
    world_.changed_.notify_all();
    for (const ReceiveMessage& receive : receives) {
      auto& queue = world_.in_transit_[{receive.peer, rank_}];
      while (queue.empty()) {
        if (!world_.wait()) return left_alone();
      }
      const std::vector<std::byte> message = std::move(queue.front());
      queue.pop_front();
      std::size_t done = 0;
      for (const ReceivePiece& piece : receive.pieces) {
        if (done + piece.bytes > message.size())
          return Status(Code::internal, "a message is shorter than its receiver expects");
        std::memcpy(piece.data, message.data() + done, piece.bytes);
        done += piece.bytes;
      }
      if (done != message.size()) return Status(Code::internal, "a message is longer than its receiver expects");
    }
    return {};
  }

  void progress() override {}

 private:
  WaitHooks hooks() {
    WaitHooks hooks;
    hooks.members_alive = [this] { return !world_.someone_left(); };
    return hooks;
  }
  ThreadWorld& world_;
  int rank_;
  std::vector<int> node_ranks_;
  std::unique_ptr<Team> team_;
};

std::unique_ptr<Communicator> ThreadWorld::make(int rank) { return std::make_unique<ThreadCommunicator>(*this, rank); }

void run_ranks(ThreadWorld& world, const std::function<void(Communicator&)>& body) {
  world.start();
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < world.size(); ++rank) communicators.push_back(world.make(rank));
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (auto& communicator : communicators) {
    threads.emplace_back([&] {
      body(*communicator);
      world.leave(communicator->rank());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace spillway::comm
