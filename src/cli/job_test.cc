#include "cli/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace spillway::cli {
namespace {

using ::testing::HasSubstr;

TEST(JobName, IsPlainAndHoldsTheProcess) {
  const std::string name = new_job_name();
  EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"),
            std::string::npos);
  EXPECT_THAT(name, HasSubstr("-" + std::to_string(::getpid()) + "-"));
  EXPECT_EQ(job_directory("/dev/shm", "j"), "/dev/shm/spillway-" + std::to_string(::getuid()) + "/j");
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

TEST(LeftBehind, CountsTheBytesOfAJobDirectory) {
  std::string directory = testing::TempDir() + "spillway_job_XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  EXPECT_EQ(left_behind_bytes(directory), -1);
  EXPECT_EQ(left_behind_bytes(directory + "/absent"), -1);
  std::filesystem::create_directory(directory + "/rank0");
  EXPECT_EQ(left_behind_bytes(directory), 0);
  std::ofstream(directory + "/rank0/segment") << std::string(100, 'x');
  EXPECT_EQ(left_behind_bytes(directory), 100);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace spillway::cli
