#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/thread_comm.h"
#include "file/open_file.h"
#include "storage/fault_backend.h"
#include "storage/posix_backend.h"

// For tests only: whole files over ranks as threads.
namespace spillway::file {

struct Shape {
  int nodes = 1;
  int ranks_per_node = 1;
  base::Stage stage = base::Stage::memory;
  std::int64_t memory_bytes = 1 << 20;
  base::AlgorithmChoice algorithm = base::AlgorithmChoice::automatic;
  base::ClosePolicy close = base::ClosePolicy::deferred;
};

// A small cluster in one process: nodes with their shared memory, one runtime per rank, a common directory.
class Cluster {
 public:
  explicit Cluster(const Shape& shape) : shape_(shape) {
    std::string name = std::filesystem::temp_directory_path() / "spillway-file-XXXXXX";
    directory_ = mkdtemp(name.data());
    backend_ = storage::make_fault_backend(
        std::shared_ptr<storage::Backend>(storage::make_posix_backend(base::DirectIo::off)), plan_);
    base::Settings settings;
    settings.stage = shape.stage;
    settings.memory_bytes = shape.memory_bytes;
    settings.algorithm = shape.algorithm;
    settings.close = shape.close;
    settings.between_nodes = base::BetweenNodes::staged;
    settings.drain_bytes = 64 * 1024;
    settings.cycle_bytes = 128 * 1024;
    settings_ = settings;
    std::vector<int> node_of;
    for (int rank = 0; rank < ranks(); ++rank) node_of.push_back(rank % shape.nodes);
    std::vector<void*> blocks;
    for (int node = 0; node < shape.nodes; ++node) {
      nodes_.push_back(std::move(*journal::Node::attach(directory_, "node" + std::to_string(node))));
      team_offsets_.push_back(*nodes_.back()->allocate_block(comm::Team::block_bytes(shape.ranks_per_node)));
      blocks.push_back(nodes_.back()->block(team_offsets_.back()));
    }
    world_ = std::make_unique<comm::ThreadWorld>(node_of, blocks);
    for (int rank = 0; rank < ranks(); ++rank) {
      Result<std::unique_ptr<Runtime>> runtime = Runtime::start(
          node(rank),
          {.settings = settings, .rank = rank, .node_processes = shape.ranks_per_node, .backend = backend_});
      EXPECT_TRUE(runtime.ok()) << runtime.status().to_string();
      runtimes_.push_back(std::move(runtime).value());
    }
  }
  ~Cluster() {
    runtimes_.clear();
    world_.reset();
    nodes_.clear();
    std::filesystem::remove_all(directory_);
  }

  [[nodiscard]] int ranks() const { return shape_.nodes * shape_.ranks_per_node; }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }
  [[nodiscard]] storage::FaultPlan& faults() { return *plan_; }
  [[nodiscard]] Runtime& runtime(int rank) { return *runtimes_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const base::Settings& settings() const { return settings_; }

  // Runs body(rank, open) on a thread per rank; open(name, mode) is collective.
  using Open = std::function<std::unique_ptr<OpenFile>(const std::string&, const OpenMode&)>;
  void run(const std::function<void(int rank, const Open& open)>& body) {
    comm::run_ranks(*world_, [&](comm::Communicator& comm) {
      const int rank = comm.rank();
      body(rank, [&](const std::string& name, const OpenMode& mode) {
        Result<std::unique_ptr<OpenFile>> file = try_open(rank, name, mode);
        EXPECT_TRUE(file.ok()) << file.status().to_string();
        return std::move(file).value();
      });
    });
  }
  // Collective, on the thread of `rank`.
  Result<std::unique_ptr<OpenFile>> try_open(int rank, const std::string& name, const OpenMode& mode) {
    OpenFile::Parts parts{runtime(rank), world_->make(rank),
                          team_offsets_[static_cast<std::size_t>(rank % shape_.nodes)] + comm::Team::kCommitWordOffset,
                          std::make_unique<comm::LocalSharedCounter>(shared_pointer_)};
    return OpenFile::open(std::move(parts), path(name), mode, Hints(settings_, ranks(), false));
  }
  // Ends the runtime of every rank, as MPI_Finalize does.
  void finish() { runtimes_.clear(); }
  [[nodiscard]] journal::Node& node(int rank) { return *nodes_[static_cast<std::size_t>(rank % shape_.nodes)]; }
  // Everything drained: the bytes of the file as another program reads them.
  [[nodiscard]] std::string content(const std::string& name) {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  Shape shape_;
  std::string directory_;
  base::Settings settings_;
  std::shared_ptr<storage::FaultPlan> plan_ = std::make_shared<storage::FaultPlan>();
  std::shared_ptr<storage::Backend> backend_;
  std::vector<std::unique_ptr<journal::Node>> nodes_;
  std::vector<std::uint64_t> team_offsets_;
  std::unique_ptr<comm::ThreadWorld> world_;
  std::vector<std::unique_ptr<Runtime>> runtimes_;
  std::atomic<std::int64_t> shared_pointer_{0};
};

inline OpenFile::Transfer transfer(std::int64_t offset, const view::MemoryLayout& memory, std::int64_t length) {
  OpenFile::Transfer result;
  result.offset = offset;
  result.memory = &memory;
  result.length = length;
  return result;
}

}  // namespace spillway::file
