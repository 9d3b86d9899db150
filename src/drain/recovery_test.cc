#include "drain/recovery.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "drain/drain.h"
#include "storage/fault_backend.h"
#include "storage/posix_backend.h"

namespace spillway::drain {
namespace {

using extent::Extent;
using extent::ExtentList;

constexpr std::int64_t kSegment = 64 * 1024;

class RecoveryTest : public testing::Test {
 protected:
  RecoveryTest() {
    std::string name = std::filesystem::temp_directory_path() / "spillway-recovery-XXXXXX";
    shm_dir_ = mkdtemp(name.data());
    job_directory_ = journal::job_directory(shm_dir_, "job");
  }
  ~RecoveryTest() override { std::filesystem::remove_all(shm_dir_); }

  // One process of the job, in a child of this one, that works until it kills itself or is killed.
  struct Worker {
    journal::Node& node;
    journal::Journal& journal;
    std::uint32_t slot;
    // Stages the bytes; complete when it returns.
    void write(const Extent& extent, char fill) const {
      const ExtentList runs = ExtentList::from_unsorted({extent});
      extent::RunCursor cursor{&runs, 0, 0};
      while (!cursor.at_end()) {
        const auto appended = journal.append(cursor, {slot, {}, INT64_MAX});
        if (!appended.ok()) _exit(3);
        std::memset(appended.value().view.payload, fill, appended.value().view.header->payload_bytes);
        journal.commit(appended.value().id);
      }
    }
  };
  pid_t start(const std::string& name, const std::function<void(Worker&)>& body) {
    const pid_t child = fork();
    if (child != 0) return child;
    try {
      work(name, body);
    } catch (...) {
      _exit(4);  // something that must succeed did not
    }
    kill(getpid(), SIGKILL);
    _exit(5);
  }
  void work(const std::string& name, const std::function<void(Worker&)>& body) {
    const auto backend = storage::make_posix_backend(base::DirectIo::off);
    const auto file = *std::move(*backend->open(path(name), {.create = true}))->attributes();
    auto node = std::move(*journal::Node::attach(shm_dir_, "job"));
    const std::uint32_t slot =
        *node->acquire_file({file.identity.device, file.identity.inode, file.birth_ns}, path(name));
    auto journal = std::move(*journal::Journal::create(
        *node, {.segment_payload_bytes = kSegment, .capacity_bytes = 64 * kSegment, .scratch_bytes = kSegment}));
    journal->set_limit(64 * kSegment);
    Worker worker{*node, *journal, slot};
    body(worker);
    kill(getpid(), SIGKILL);  // not by the destructors
  }
  static void wait_killed(pid_t child) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
  }
  void run_and_kill(const std::string& name, const std::function<void(Worker&)>& body) {
    wait_killed(start(name, body));
  }

  Result<RecoveryReport> recover(const RecoveryOptions& options = {}) {
    return recover_job(job_directory_, *backend_, options);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return shm_dir_ + "/" + name; }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string shm_dir_;
  std::string job_directory_;
  std::shared_ptr<storage::FaultPlan> plan_ = std::make_shared<storage::FaultPlan>();
  std::shared_ptr<storage::Backend> backend_ = storage::make_fault_backend(
      std::shared_ptr<storage::Backend>(storage::make_posix_backend(base::DirectIo::off)), plan_);
};

TEST_F(RecoveryTest, WritesWhatWasCompleteNewestLastAndRemovesTheJournals) {
  run_and_kill("a", [](Worker& worker) {
    worker.write({0, 100}, 'a');
    worker.write({200000, 100}, 'z');
  });
  run_and_kill("a", [](Worker& worker) { worker.write({50, 100}, 'b'); });
  Result<std::vector<LeftJob>> jobs = list_jobs(shm_dir_);
  ASSERT_TRUE(jobs.ok());
  ASSERT_EQ(jobs->size(), 1U);
  EXPECT_FALSE((*jobs)[0].alive);
  ASSERT_EQ((*jobs)[0].files.size(), 1U);
  EXPECT_EQ((*jobs)[0].files[0].bytes, 300);
  EXPECT_EQ((*jobs)[0].files[0].path, path("a"));

  Result<RecoveryReport> report = recover();
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(report->removed);
  ASSERT_EQ(report->files.size(), 1U);
  EXPECT_EQ(report->files[0].bytes_written, 300);
  EXPECT_EQ(report->files[0].problem, "");
  const std::string text = content("a");
  EXPECT_EQ(text.substr(0, 150), std::string(50, 'a') + std::string(100, 'b'));
  EXPECT_EQ(text.substr(200000), std::string(100, 'z'));
  EXPECT_FALSE(std::filesystem::exists(job_directory_));
  EXPECT_EQ(recover().status().code(), Code::no_such_file);
  EXPECT_TRUE(list_jobs(shm_dir_)->empty());
}

TEST_F(RecoveryTest, AnUnfinishedRecordIsNotTrusted) {
  run_and_kill("a", [](Worker& worker) {
    worker.write({0, 10}, 'a');
    const ExtentList runs = ExtentList::from_unsorted({{5, 10}});
    extent::RunCursor cursor{&runs, 0, 0};
    const auto appended = worker.journal.append(cursor, {worker.slot, {}, INT64_MAX});
    std::memset(appended.value().view.payload, 'x', 3);
  });
  ASSERT_TRUE(recover().ok());
  EXPECT_EQ(content("a"), std::string(10, 'a'));
}

TEST_F(RecoveryTest, ATeamsCommitIsFoundAlthoughNoOwnerLivedToNoteIt) {
  run_and_kill("a", [](Worker& worker) {
    const std::uint64_t word = *worker.node.allocate_block(4096);
    auto& commits = *static_cast<std::atomic<std::uint32_t>*>(worker.node.block(word));
    const ExtentList runs = ExtentList::from_unsorted({{0, 10}});
    for (const std::uint32_t number : {1U, 2U}) {
      extent::RunCursor cursor{&runs, 0, 0};
      const journal::CommitRule rule{journal::CommitKind::by_team, word, number};
      const auto appended = worker.journal.append(cursor, {worker.slot, rule, INT64_MAX});
      std::memset(appended.value().view.payload, 'a' + static_cast<int>(number), 10);
    }
    commits = 1;  // the first went through, the second did not
  });
  ASSERT_TRUE(recover().ok());
  EXPECT_EQ(content("a"), std::string(10, 'b'));
}

TEST_F(RecoveryTest, ADryRunTouchesNothing) {
  run_and_kill("a", [](Worker& worker) { worker.write({0, 10}, 'a'); });
  Result<RecoveryReport> report = recover({.dry_run = true});
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->removed);
  EXPECT_EQ(report->files[0].bytes_written, 10);
  EXPECT_EQ(content("a"), "");
  EXPECT_TRUE(recover()->removed);
  EXPECT_EQ(content("a"), std::string(10, 'a'));
}

TEST_F(RecoveryTest, ALivingJobIsLeftAlone) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = start("a", [&](Worker& worker) {
    worker.write({0, 10}, 'a');
    if (write(ready[1], "x", 1) != 1) _exit(5);
    pause();
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(recover().status().code(), Code::file_in_use);
  EXPECT_TRUE((*list_jobs(shm_dir_))[0].alive);
  kill(child, SIGKILL);
  wait_killed(child);
  EXPECT_TRUE(recover()->removed);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(RecoveryTest, AFileThatIsGoneIsReportedRangeByRange) {
  run_and_kill("a", [](Worker& worker) {
    worker.write({100, 10}, 'a');
    worker.write({110, 10}, 'b');
    worker.write({500, 1}, 'c');
  });
  run_and_kill("b", [](Worker& worker) { worker.write({0, 7}, 'b'); });
  std::filesystem::rename(path("a"), path("moved"));
  std::ofstream(path("a")) << "another file of that name";
  Result<RecoveryReport> report = recover();
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->removed);
  ASSERT_EQ(report->files.size(), 2U);
  const RecoveredFile& lost = report->files[0].path == path("a") ? report->files[0] : report->files[1];
  EXPECT_EQ(lost.bytes_written, 0);
  EXPECT_EQ(lost.lost, (std::vector<Extent>{{100, 20}, {500, 1}}));
  EXPECT_NE(lost.problem.find("another one now"), std::string::npos) << lost.problem;
  EXPECT_EQ(content("a"), "another file of that name");
  EXPECT_EQ(content("b"), "bbbbbbb");
  // Back in its place the file can be completed.
  std::filesystem::rename(path("moved"), path("a"));
  EXPECT_TRUE(recover()->removed);
  EXPECT_EQ(content("a").substr(100, 20), std::string(10, 'a') + std::string(10, 'b'));
}

TEST_F(RecoveryTest, ANewFileWithTheNameAndInodeOfADeletedOneIsLeftAlone) {
  run_and_kill("a", [](Worker& worker) { worker.write({0, 10}, 'a'); });
  std::filesystem::remove(path("a"));
  std::ofstream(path("a")) << "a new file";  // most file systems give it the same inode
  Result<RecoveryReport> report = recover();
  ASSERT_TRUE(report.ok());
  EXPECT_NE(report->files[0].problem.find("another one now"), std::string::npos) << report->files[0].problem;
  EXPECT_EQ(content("a"), "a new file");
  EXPECT_TRUE(recover({.salvage = true})->removed);
  EXPECT_EQ(content("a"), "a new file");
}

TEST_F(RecoveryTest, AFullFileSystemKeepsTheJournal) {
  run_and_kill("a", [](Worker& worker) {
    worker.write({0, 10}, 'a');
    worker.write({10, 10}, 'b');
  });
  plan_->add({.operation = storage::Operation::write, .errno_value = ENOSPC, .skip = 1});
  Result<RecoveryReport> report = recover();
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->removed);
  EXPECT_NE(report->files[0].problem.find("No space"), std::string::npos);
  EXPECT_TRUE(recover()->removed);
  EXPECT_EQ(content("a"), std::string(10, 'a') + std::string(10, 'b'));
}

TEST_F(RecoveryTest, DamageIsRefusedUntilToldToSalvage) {
  run_and_kill("a", [](Worker& worker) {
    worker.write({0, 1000}, 'a');
    worker.write({1000, 1000}, 'b');
    for (std::uint32_t i = 0; i < 8; ++i) {
      const auto ids = worker.journal.find(worker.slot, {0, 2000});
      for (const auto& piece : ids) worker.journal.seal(piece.id);
    }
    // A stray write of the host program into the second record's bytes.
    const auto pieces = worker.journal.find(worker.slot, {1500, 1});
    const_cast<std::byte*>(pieces[0].bytes)[0] = std::byte{'!'};
  });
  Result<RecoveryReport> report = recover();
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->removed);
  EXPECT_EQ(report->damage.size(), 1U);
  EXPECT_EQ(content("a"), "");
  report = recover({.salvage = true});
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->removed);
  EXPECT_EQ(report->files[0].lost, (std::vector<Extent>{{1000, 1000}}));
  EXPECT_EQ(content("a"), std::string(1000, 'a'));
}

// A process that is killed at any moment, with a drain that is at work at the same time: every write that had returned is in the file
// after recovery, and so is nothing that was never written.
TEST_F(RecoveryTest, NothingCompleteIsLostWheneverTheProcessIsKilled) {
  const char* seed_text = std::getenv("SPILLWAY_TEST_SEED");
  const unsigned long seed = seed_text != nullptr ? std::strtoul(seed_text, nullptr, 10) : 20261120;
  SCOPED_TRACE("SPILLWAY_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::int64_t kFileBytes = 40000;
  // Shared with the child: how many writes have returned.
  auto* returned =
      static_cast<std::atomic<int>*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(returned, MAP_FAILED);
  for (int round = 0; round < 60; ++round) {
    struct Write {
      Extent extent;
      char fill;
    };
    std::vector<Write> writes;
    for (int i = 0; i < 400; ++i) {
      const std::int64_t offset = static_cast<std::int64_t>(random() % (kFileBytes - 3000));
      writes.push_back({{offset, 1 + static_cast<std::int64_t>(random() % 3000)}, static_cast<char>('A' + i % 50)});
    }
    returned->store(0);
    const int writes_first = static_cast<int>(random() % (writes.size() + 1));
    const std::uint64_t yields_then = random() % 100;
    const std::string name = "f" + std::to_string(round);
    const pid_t child = start(name, [&](Worker& worker) {
      base::Activity activity(base::system_clock());
      journal::Pending pending(worker.node, worker.journal);
      Drain drain({worker.node, worker.journal, pending, activity, base::system_clock(), nullptr});
      drain.start();
      auto target = std::make_shared<Target>();
      target->slot = worker.slot;
      target->path = path(name);
      target->file = std::move(*storage::make_posix_backend(base::DirectIo::off)->open(path(name), {}));
      for (const Write& write : writes) {
        const ExtentList runs = ExtentList::from_unsorted({write.extent});
        extent::RunCursor cursor{&runs, 0, 0};
        while (!cursor.at_end()) {
          const auto appended = worker.journal.append(cursor, {worker.slot, {}, INT64_MAX});
          if (!appended.ok()) {
            worker.journal.wait_for_space(100000);
            continue;
          }
          std::memset(appended.value().view.payload, write.fill, appended.value().view.header->payload_bytes);
          worker.journal.commit(appended.value().id);
          drain.submit(appended.value().id, target);
        }
        returned->fetch_add(1);
      }
      pause();
    });
    // The moment of death: so many writes have returned, and the drain is somewhere.
    siginfo_t ended{};
    while (returned->load() < writes_first &&
           waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0) {
      std::this_thread::yield();
    }
    for (std::uint64_t i = 0; i < yields_then; ++i) std::this_thread::yield();
    kill(child, SIGKILL);
    wait_killed(child);
    const int complete = returned->load();
    if (std::filesystem::exists(job_directory_)) {
      Result<RecoveryReport> report = recover();
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      EXPECT_TRUE(report->removed);
    }
    // After the writes that returned, the next one may have been complete without having been counted.
    std::string model(kFileBytes, '\0');
    for (int i = 0; i < complete; ++i) {
      const Write& write = writes[static_cast<std::size_t>(i)];
      std::fill_n(model.begin() + write.extent.offset, write.extent.length, write.fill);
    }
    std::string model_with_next = model;
    if (complete < static_cast<int>(writes.size())) {
      const Write& next = writes[static_cast<std::size_t>(complete)];
      std::fill_n(model_with_next.begin() + next.extent.offset, next.extent.length, next.fill);
    }
    std::string got = content(name);
    got.resize(kFileBytes);
    ASSERT_TRUE(got == model || got == model_with_next)
        << "round " << round << ", " << complete << " writes had returned";
  }
  munmap(returned, 4096);
}

}  // namespace
}  // namespace spillway::drain
