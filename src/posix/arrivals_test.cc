#include "posix/arrivals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/inside.h"
#include "journal/journal.h"

namespace spillway::posix {
namespace {

constexpr std::int64_t kSegment = 64 * 1024;

// One job for all tests of the process: watch() is for good.
struct Job {
  Job() {
    std::string name = std::filesystem::temp_directory_path() / "spillway-arrivals-XXXXXX";
    directory = mkdtemp(name.data());
    node = std::move(*journal::Node::attach(directory, "job"));
    watch(*node);
  }
  ~Job() { std::filesystem::remove_all(directory); }

  [[nodiscard]] std::string make_file(const std::string& name) const {
    const std::string path = directory + "/" + name;
    std::ofstream(path) << "old";
    return path;
  }
  static std::uint32_t slot_of(journal::Node& node, const std::string& path) {
    struct stat st {};
    EXPECT_EQ(stat(path.c_str(), &st), 0);
    return *node.acquire_file({static_cast<std::uint64_t>(st.st_dev), static_cast<std::uint64_t>(st.st_ino)}, path);
  }
  // A process of the job: its journal with one complete record of the file.
  static std::unique_ptr<journal::Journal> stage(journal::Node& node, const std::string& path, journal::RecordId& id) {
    auto made = journal::Journal::create(
        node, {.segment_payload_bytes = kSegment, .capacity_bytes = 4 * kSegment, .scratch_bytes = kSegment});
    std::unique_ptr<journal::Journal> journal = std::move(made).value();
    journal->set_limit(4 * kSegment);
    const auto runs = extent::ExtentList::from_unsorted({{0, 100}});
    extent::RunCursor cursor{&runs, 0, 0};
    auto appended = journal->append(cursor, {slot_of(node, path), {}, INT64_MAX});
    std::memset(appended.value().view.payload, 'n', 100);
    id = appended.value().id;
    journal->commit(id);
    return journal;
  }

  std::string directory;
  std::unique_ptr<journal::Node> node;
};
Job& job() {
  static Job instance;
  return instance;
}

// Far more than any wait here takes; what comes after is a hang.
constexpr std::chrono::seconds kHang{60};

TEST(Arrivals, ACallWaitsUntilTheBytesOfItsFileHaveArrivedAndLeavesErrnoAlone) {
  const std::string path = job().make_file("late");
  const std::string other = job().make_file("other");
  journal::RecordId id;
  const auto journal = Job::stage(*job().node, path, id);
  ASSERT_TRUE(anything_pending());
  await_path(AT_FDCWD, other.c_str());
  await_path(AT_FDCWD, (other + ".missing").c_str());
  {
    const base::Inside inside;
    await_path(AT_FDCWD, path.c_str());
  }

  std::promise<void> started;
  auto waited = std::async(std::launch::async, [&] {
    started.set_value();
    errno = 1234;
    await_path(AT_FDCWD, path.c_str());
    // Only after the record had ended.
    const bool arrived = job().node->file(Job::slot_of(*job().node, path)).pending_records.load() == 0;
    return arrived && errno == 1234;
  });
  started.get_future().wait();
  journal->retire(id);
  ASSERT_EQ(waited.wait_for(kHang), std::future_status::ready);
  EXPECT_TRUE(waited.get());
  EXPECT_FALSE(anything_pending());
}

TEST(Arrivals, NobodyWaitsForBytesWhoseProcessHasDied) {
  const std::string path = job().make_file("orphaned");
  const pid_t child = fork();
  if (child == 0) {
    const auto node = std::move(*journal::Node::attach(job().directory, "job"));
    journal::RecordId id;
    const auto journal = Job::stage(*node, path, id);
    kill(getpid(), SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;

  const std::uint32_t slot = Job::slot_of(*job().node, path);
  ASSERT_EQ(job().node->file(slot).pending_records.load(), 1u);
  auto waited = std::async(std::launch::async, [&] {
    await_path(AT_FDCWD, path.c_str());
    await_all();
  });
  const bool returned = waited.wait_for(kHang) == std::future_status::ready;
  job().node->file(slot).pending_records.store(0);  // ends the wait also where it would not end by itself
  EXPECT_TRUE(returned);
}

TEST(Arrivals, ARenameTellsRecoveryTheNewName) {
  const std::string path = job().make_file("before");
  const std::string renamed = job().directory + "/after";
  journal::RecordId id;
  const auto journal = Job::stage(*job().node, path, id);
  const std::uint32_t slot = Job::slot_of(*job().node, path);
  const RenameNote note(AT_FDCWD, path.c_str(), AT_FDCWD, renamed.c_str());
  ASSERT_EQ(rename(path.c_str(), renamed.c_str()), 0);
  note.done();
  EXPECT_EQ(job().node->file_path(slot), renamed);
  journal->retire(id);
}

}  // namespace
}  // namespace spillway::posix
