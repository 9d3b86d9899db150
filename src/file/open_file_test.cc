// Opening and closing, and what a dead process leaves to the living.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "file/test_cluster.h"

namespace spillway::file {
namespace {

// A process of the job was killed and the launcher left the others running: what it had written stays pending until recovery.
TEST(DeadPeer, AWriteBehindItsBytesFailsInsteadOfWaitingForEver) {
  std::string name = std::filesystem::temp_directory_path() / "spillway-file-XXXXXX";
  const std::string directory = mkdtemp(name.data());
  const std::string path = directory + "/data";
  std::ofstream(path) << "old";
  const std::shared_ptr<storage::Backend> backend = storage::make_posix_backend(base::DirectIo::off);
  const storage::FileIdentity identity = backend->attributes(path)->identity;
  const pid_t child = fork();
  if (child == 0) {
    const auto node = std::move(*journal::Node::attach(directory, "job"));
    const auto journal = std::move(*journal::Journal::create(*node, {.capacity_bytes = 16 << 20}));
    journal->set_limit(16 << 20);
    const auto runs = extent::ExtentList::from_unsorted({{0, 100}});
    extent::RunCursor cursor{&runs, 0, 0};
    const auto slot = *node->acquire_file({identity.device, identity.inode}, path);
    const auto appended = journal->append(cursor, {slot, {}, INT64_MAX});
    journal->commit(appended.value().id);
    kill(getpid(), SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;

  const auto node = std::move(*journal::Node::attach(directory, "job"));
  base::Settings settings;
  settings.stage = base::Stage::none;
  auto runtime = std::move(*Runtime::start(*node, {.settings = settings, .backend = backend}));
  comm::ThreadWorld world({0});
  std::atomic<std::int64_t> shared_pointer{0};
  auto file = std::move(
      *OpenFile::open({*runtime, world.make(0), 0, std::make_unique<comm::LocalSharedCounter>(shared_pointer)}, path,
                      {}, Hints(settings, 1, false)));
  std::byte bytes[100] = {};
  const view::MemoryLayout memory = view::MemoryLayout::contiguous_bytes(bytes, sizeof bytes);
  EXPECT_EQ(file->write(transfer(50, memory, 100)).code(), Code::peer_lost);
  EXPECT_TRUE(file->write(transfer(100, memory, 100)).ok());  // beside them
  EXPECT_TRUE(file->close().ok());
  runtime.reset();
  node->leave();
  std::filesystem::remove_all(directory);
}

// Recovery may run in any directory.
TEST(Open, TheNameThatRecoveryUsesIsAbsolute) {
  Cluster cluster({});
  const std::string relative = std::filesystem::relative(cluster.path("data")).string();
  ASSERT_NE(relative.front(), '/');
  comm::ThreadWorld world({0});
  std::atomic<std::int64_t> shared_pointer{0};
  auto file = std::move(*OpenFile::open(
      {cluster.runtime(0), world.make(0), 0, std::make_unique<comm::LocalSharedCounter>(shared_pointer)}, relative,
      {.create = true}, Hints(cluster.settings(), 1, false)));
  const storage::FileIdentity identity = cluster.runtime(0).backend().attributes(cluster.path("data"))->identity;
  journal::Node& node = cluster.runtime(0).node();
  const std::string named = node.file_path(*node.find_file({identity.device, identity.inode}));
  EXPECT_EQ(named.front(), '/');
  EXPECT_TRUE(std::filesystem::equivalent(named, cluster.path("data")));
  EXPECT_TRUE(file->close().ok());
}

// What the program waits in a drained close is not hidden: it must count as time inside a call.
TEST(DrainedClose, ItsWaitCounts) {
  Cluster cluster({.close = base::ClosePolicy::drained});
  std::atomic<bool> closing{false};
  std::atomic<bool> counted{false};
  cluster.faults().set_observer([&](storage::Operation operation, const std::string&) {
    if (operation != storage::Operation::write) return;
    // Holds the write up until the close is seen to be inside a call, or for so long that it never will be.
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!counted && std::chrono::steady_clock::now() < give_up) {
      counted = closing && cluster.runtime(0).node().header().calls_inside.load() > 0;
      std::this_thread::yield();
    }
  });
  cluster.run([&](int, const Cluster::Open& open) {
    auto file = open("data", {.create = true});
    std::byte bytes[100] = {};
    const view::MemoryLayout memory = view::MemoryLayout::contiguous_bytes(bytes, sizeof bytes);
    ASSERT_TRUE(file->write(transfer(0, memory, 100)).ok());
    closing = true;
    ASSERT_TRUE(file->close().ok());
  });
  EXPECT_TRUE(counted);
}

}  // namespace
}  // namespace spillway::file
