// libc calls of the program wait until what is pending for a file has arrived, for that file only, and never for bytes that cannot.
#include "posix/arrivals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/inside.h"
#include "journal/journal.h"

namespace spillway::posix {
namespace {

// watch() is for ever: one node for all tests, and a new file for each.
class ArrivalsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = std::filesystem::temp_directory_path() / "spillway-arrivals-XXXXXX";
    directory_ = mkdtemp(name.data());
    EXPECT_FALSE(anything_pending());  // nobody watches anything yet
    await_path(AT_FDCWD, "/");
    await_all();
    node_ = std::move(*journal::Node::attach(directory_, "job")).release();
    journal_ = std::move(*journal::Journal::create(
        *node_, {.segment_payload_bytes = 65536, .capacity_bytes = 1 << 20, .scratch_bytes = 65536}));
    journal_->set_limit(1 << 20);
    watch(*node_);
  }
  static void TearDownTestSuite() {
    journal_.reset();
    node_->leave();
    std::filesystem::remove_all(directory_);
  }

  ArrivalsTest() : path_(directory_ + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::ofstream(path_) << "x";
    slot_ = slot_of(path_);
  }
  ~ArrivalsTest() override {
    for (const journal::RecordId& id : pending_) journal_->retire(id);
    node_->release_file(slot_);
    EXPECT_FALSE(anything_pending());
  }

  static std::uint32_t slot_of(const std::string& path) {
    struct stat st {};
    EXPECT_EQ(stat(path.c_str(), &st), 0);
    return *node_->acquire_file({st.st_dev, st.st_ino}, path);
  }
  journal::RecordId stage(std::uint32_t slot) {
    const extent::ExtentList runs = extent::ExtentList::from_unsorted({{0, 10}});
    extent::RunCursor cursor{&runs, 0, 0};
    const auto appended = journal_->append(cursor, {slot, {}, INT64_MAX});
    EXPECT_TRUE(appended.ok());
    journal_->commit(appended.value().id);
    pending_.push_back(appended.value().id);
    return pending_.back();
  }
  void arrive() {
    journal_->retire(pending_.front());
    pending_.erase(pending_.begin());
  }
  // Runs the call on a thread while something is pending, sees it wait, lets the bytes arrive, and sees it return.
  void expect_waits(const std::function<void()>& call) {
    stage(slot_);
    std::atomic<bool> returned{false};
    std::thread caller([&] {
      errno = EDOM;
      call();
      EXPECT_EQ(errno, EDOM);
      returned = true;
    });
    while (node_->header().retired_waiters.load() == 0) std::this_thread::yield();
    EXPECT_FALSE(returned);
    arrive();
    caller.join();
    EXPECT_TRUE(returned);
  }

  static std::string directory_;
  static journal::Node* node_;
  static std::unique_ptr<journal::Journal> journal_;
  std::string path_;
  std::uint32_t slot_ = 0;
  std::vector<journal::RecordId> pending_;
};
std::string ArrivalsTest::directory_;
journal::Node* ArrivalsTest::node_ = nullptr;
std::unique_ptr<journal::Journal> ArrivalsTest::journal_;

TEST_F(ArrivalsTest, ByName) {
  expect_waits([&] { await_path(AT_FDCWD, path_.c_str()); });
}

TEST_F(ArrivalsTest, ByNameInADirectoryAndThroughALink) {
  const int directory = open(directory_.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_GE(directory, 0);
  expect_waits([&] { await_path(directory, std::filesystem::path(path_).filename().c_str()); });
  const std::string link = path_ + "-link";
  std::filesystem::create_symlink(path_, link);
  expect_waits([&] { await_path(AT_FDCWD, link.c_str()); });
  close(directory);
}

TEST_F(ArrivalsTest, ByDescriptor) {
  const int descriptor = open(path_.c_str(), O_RDONLY);
  ASSERT_GE(descriptor, 0);
  expect_waits([&] { await_descriptor(descriptor); });
  close(descriptor);
}

TEST_F(ArrivalsTest, AnyFile) {
  expect_waits([] { await_all(); });
}

// These return although something is pending: the test would not end otherwise.
TEST_F(ArrivalsTest, OtherFilesAndNoFilesAreNotWaitedFor) {
  stage(slot_);
  EXPECT_TRUE(anything_pending());
  const std::string other = path_ + "-other";
  std::ofstream(other) << "y";
  errno = EDOM;
  await_path(AT_FDCWD, other.c_str());
  await_path(AT_FDCWD, (path_ + "-nothing").c_str());
  await_path(AT_FDCWD, directory_.c_str());
  await_path(AT_FDCWD, nullptr);
  await_path(-1, "relative");
  await_descriptor(-1);
  EXPECT_EQ(errno, EDOM);
}

TEST_F(ArrivalsTest, SpillwaysOwnCallsDoNotWait) {
  stage(slot_);
  const base::Inside inside;
  await_path(AT_FDCWD, path_.c_str());
  await_all();
}

TEST_F(ArrivalsTest, BytesThatCannotBeWrittenAreNotWaitedFor) {
  stage(slot_);
  node_->file(slot_).stuck_owners.store(1);
  await_path(AT_FDCWD, path_.c_str());
  await_all();
  node_->file(slot_).stuck_owners.store(0);
}

TEST_F(ArrivalsTest, ARenamedFileIsWhereRecoveryLooks) {
  stage(slot_);
  const std::string renamed = path_ + "-renamed";
  {
    const RenameNote failed(AT_FDCWD, path_.c_str(), AT_FDCWD, renamed.c_str());
    EXPECT_EQ(node_->file_path(slot_), path_);  // the rename did not succeed
  }
  const RenameNote note(AT_FDCWD, path_.c_str(), AT_FDCWD, renamed.c_str());
  std::filesystem::rename(path_, renamed);
  note.done();
  EXPECT_EQ(node_->file_path(slot_), renamed);

  const int directory = open(directory_.c_str(), O_RDONLY | O_DIRECTORY);
  const RenameNote back(AT_FDCWD, renamed.c_str(), directory, "back");
  back.done();
  EXPECT_EQ(node_->file_path(slot_), directory_ + "/back");
  close(directory);
  const RenameNote nobody(AT_FDCWD, "/nothing", AT_FDCWD, "/other");
  nobody.done();
  EXPECT_EQ(node_->file_path(slot_), directory_ + "/back");
}

// Far more than the wait takes; what comes after is a hang.
constexpr std::chrono::seconds kHang{60};

TEST_F(ArrivalsTest, NobodyWaitsForBytesWhoseProcessHasDied) {
  const pid_t child = fork();
  if (child == 0) {
    const auto node = std::move(*journal::Node::attach(directory_, "job"));
    auto made = journal::Journal::create(
        *node, {.segment_payload_bytes = 65536, .capacity_bytes = 1 << 18, .scratch_bytes = 65536});
    const auto journal = std::move(made).value();
    journal->set_limit(1 << 18);
    const extent::ExtentList runs = extent::ExtentList::from_unsorted({{0, 10}});
    extent::RunCursor cursor{&runs, 0, 0};
    journal->commit(journal->append(cursor, {slot_, {}, INT64_MAX}).value().id);
    kill(getpid(), SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  ASSERT_EQ(node_->file(slot_).pending_records.load(), 1U);
  auto waited = std::async(std::launch::async, [&] {
    await_path(AT_FDCWD, path_.c_str());
    await_all();
  });
  const bool returned = waited.wait_for(kHang) == std::future_status::ready;
  node_->file(slot_).pending_records.store(0);  // ends the wait also where it would not end by itself
  node_->header().pending_files.store(0);
  EXPECT_TRUE(returned);
}

}  // namespace
}  // namespace spillway::posix
