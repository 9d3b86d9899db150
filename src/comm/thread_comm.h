#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "comm/communicator.h"

namespace spillway::comm {

// N ranks as threads of one process, for tests: the algorithms run unchanged, under sanitizers, without MPI.
// Threads: make() the communicators first, then give each to its thread. The world outlives them.
class ThreadWorld {
 public:
  // node_of_rank[r] is the node that rank r pretends to run on. A team block may be given per node (memory that a test wants to
  // look at, or that crashes are simulated on); otherwise the world has its own.
  explicit ThreadWorld(std::vector<int> node_of_rank, std::vector<void*> team_blocks = {});
  ~ThreadWorld();
  ThreadWorld(const ThreadWorld&) = delete;
  ThreadWorld& operator=(const ThreadWorld&) = delete;

  [[nodiscard]] int size() const { return static_cast<int>(node_of_rank_.size()); }
  std::unique_ptr<Communicator> make(int rank);

  // The rank's thread will make no more calls: whoever waits for it gets peer_lost instead of waiting for ever. This is how a test that
  // failed on one rank ends on all.
  void leave(int rank);
  // All ranks are there (again).
  void start();

 private:
  friend class ThreadCommunicator;

  // One all-gather at a time; `generation` tells the ranks of two successive ones apart.
  struct Gathering {
    std::uint64_t generation = 0;
    int arrived = 0;
    std::vector<std::vector<std::byte>> parts;
    std::shared_ptr<Gathered> result;
  };

  std::vector<int> node_of_rank_;
  int node_count_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> own_blocks_;
  std::vector<void*> team_blocks_;
  [[nodiscard]] bool someone_left();
  // Waits for a change, at most a while; false when that is in vain because somebody left.
  bool wait() SPILLWAY_REQUIRES(mutex_);

  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<bool> left_ SPILLWAY_GUARDED_BY(mutex_);
  Gathering gathering_ SPILLWAY_GUARDED_BY(mutex_);
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> in_transit_ SPILLWAY_GUARDED_BY(mutex_);
};

// Runs body(communicator) on one thread per rank and waits for all.
void run_ranks(ThreadWorld& world, const std::function<void(Communicator&)>& body);

}  // namespace spillway::comm
