#include "cli/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "journal/journal.h"
#include "storage/posix_backend.h"

namespace spillway::cli {
namespace {

using ::testing::HasSubstr;

TEST(JobName, IsPlainAndHoldsTheProcess) {
  const std::string name = new_job_name();
  EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"),
            std::string::npos);
  EXPECT_THAT(name, HasSubstr("-" + std::to_string(::getpid()) + "-"));
}

TEST(SummaryFile, AddsUpTheLinesAndIsGoneAfterwards) {
  std::string path;
  {
    const Result<SummaryFile> file = SummaryFile::create();
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    path = file.value().path();
    struct stat info {};
    ASSERT_EQ(::stat(std::filesystem::path(path).parent_path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
    EXPECT_EQ(file.value().read().lines, 0);
    std::ofstream(path) << "{\"bytes_written\":5}\n{\"bytes_written\":6,\"errors\":1}\n{\"bytes_wr";
    const SummaryFile::Content content = file.value().read();
    EXPECT_EQ(content.lines, 2);
    EXPECT_EQ(content.damaged_lines, 1);
    EXPECT_EQ(content.total.bytes_written, 11);
    EXPECT_EQ(content.total.errors, 1);
  }
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

TEST(EndOfRun, SaysWhyThereIsNoSummary) {
  SummaryFile::Content content;
  EXPECT_THAT(end_of_run_text(content, 0), HasSubstr("nothing went through MPI-IO"));
  EXPECT_THAT(end_of_run_text(content, 137), HasSubstr("exit code 137"));
  content.damaged_lines = 2;
  EXPECT_THAT(end_of_run_text(content, 0), HasSubstr("2 summary lines were damaged"));
  content.lines = 1;
  content.total.bytes_written = 1024;
  EXPECT_THAT(end_of_run_text(content, 1), HasSubstr("wrote 1.00 KiB"));
}

class LeftBehind : public testing::Test {
 protected:
  LeftBehind() { EXPECT_NE(::mkdtemp(shm_dir_.data()), nullptr); }
  ~LeftBehind() override { std::filesystem::remove_all(shm_dir_); }

  // A process of the job that stages `text` for a file and is killed before it can write it.
  void killed_process(const std::string& path, const std::string& text) const {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto backend = storage::make_posix_backend(base::DirectIo::off);
      const auto identity = std::move(*backend->open(path, {.create = true}))->attributes()->identity;
      auto node = std::move(*journal::Node::attach(shm_dir_, "job"));
      const std::uint32_t slot = *node->acquire_file({identity.device, identity.inode}, path);
      auto journal = std::move(*journal::Journal::create(
          *node, {.segment_payload_bytes = 65536, .capacity_bytes = 65536, .scratch_bytes = 65536}));
      journal->set_limit(65536);
      if (!text.empty()) {
        const auto runs = extent::ExtentList::from_unsorted({{0, static_cast<std::int64_t>(text.size())}});
        extent::RunCursor cursor{&runs, 0, 0};
        const auto appended = journal->append(cursor, {slot, {}, INT64_MAX});
        std::memcpy(appended.value().view.payload, text.data(), text.size());
        journal->commit(appended.value().id);
      }
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }

  std::string shm_dir_ = testing::TempDir() + "spillway_job_XXXXXX";
};

TEST_F(LeftBehind, NothingIsSaidWhereThereIsNothing) { EXPECT_EQ(clean_up_after(shm_dir_, "job"), ""); }

TEST_F(LeftBehind, PendingBytesAreNamedAndKept) {
  const std::string path = shm_dir_ + "/output";
  killed_process(path, "twelve bytes");
  EXPECT_THAT(clean_up_after(shm_dir_, "job"),
              HasSubstr("12 B are complete in the job's journals but not in their files yet"));
  EXPECT_THAT(clean_up_after(shm_dir_, "job"), HasSubstr("`spillway recover --shm-dir " + shm_dir_ + " job`"));
}

TEST_F(LeftBehind, EmptyJournalsOfKilledProcessesAreRemoved) {
  killed_process(shm_dir_ + "/output", "");
  EXPECT_TRUE(std::filesystem::exists(journal::job_directory(shm_dir_, "job")));
  EXPECT_EQ(clean_up_after(shm_dir_, "job"), "");
  EXPECT_FALSE(std::filesystem::exists(journal::job_directory(shm_dir_, "job")));
}

}  // namespace
}  // namespace spillway::cli
