// Recovery of what a job left behind, after any bytes of it have changed: a stray write of the program, a torn page, a bad disk.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "drain/test_damaged_job.h"

namespace spillway::drain {
namespace {

using Change = DamagedJob::Change;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRounds = 100;
constexpr std::size_t kStride = 61;
#else
constexpr int kRounds = 500;
constexpr std::size_t kStride = 7;
#endif

std::string scratch_folder() {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path().string();
}

TEST(DamagedJournal, WithoutDamageEverythingCompleteIsRecovered) {
  DamagedJob job(scratch_folder());
  EXPECT_EQ(job.recover({}, {}), "");
  ASSERT_TRUE(job.report().ok()) << job.report().status().to_string();
  EXPECT_TRUE(job.report().value().removed);
  ASSERT_EQ(job.report().value().files.size(), 2U);
  EXPECT_EQ(job.report().value().files[0].bytes_written, 100 + 100 + 100);
  EXPECT_EQ(job.report().value().files[1].bytes_written, 500 + 64);
  EXPECT_EQ(job.content("/x").size(), 350U);
  EXPECT_EQ(job.content("/y").size(), 3064U);
}

TEST(DamagedJournal, AnyDamageIsSurvivedAndNothingDamagedIsTrusted) {
  DamagedJob job(scratch_folder());
  std::mt19937_64 random(20261120);
  int refused = 0;
  int recovered = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Change> changes(1 + random() % 3);
    for (Change& change : changes) {
      change.kind = random() % 50 == 0 ? Change::Kind::cut : Change::Kind::flip;
      change.part = random() % job.part_count();
      change.offset = random() % job.part_bytes(change.part);
      change.mask = static_cast<std::uint8_t>(random() % 4 == 0 ? 0xff : 1U << random() % 8);
    }
    const RecoveryOptions options{.dry_run = random() % 8 == 0, .salvage = random() % 2 == 0};
    ASSERT_EQ(job.recover(changes, options), "") << "round " << round;
    if (!job.report().ok() || !job.report().value().damage.empty()) ++refused;
    if (job.report().ok() && job.report().value().removed) ++recovered;
  }
  // Both ways have been taken.
  EXPECT_GT(refused, kRounds / 20);
  EXPECT_GT(recovered, kRounds / 20);
}

// Bytes of every table, header and payload on their own, spread evenly.
TEST(DamagedJournal, SingleBytesEverywhere) {
  DamagedJob job(scratch_folder());
  std::size_t step = 0;
  for (std::size_t part = 0; part < job.part_count(); ++part) {
    for (std::size_t offset = 0; offset < job.part_bytes(part); ++offset) {
      if (step++ % kStride != 0) continue;
      const Change change{Change::Kind::flip, part, offset, 0x81};
      ASSERT_EQ(job.recover({&change, 1}, {}), "") << "part " << part << ", byte " << offset;
    }
  }
}

// A count or version of the node's tables that cannot be: nothing is read by it, and nothing is removed.
TEST(DamagedJournal, TablesThatDoNotCheckAreLeftAlone) {
  DamagedJob job(scratch_folder());
  std::size_t refused = 0;
  for (std::size_t part = 0; part < job.part_count(); ++part) {
    for (std::size_t offset = 0; offset < std::min<std::size_t>(job.part_bytes(part), 16); ++offset) {
      const Change change{Change::Kind::flip, part, offset, 0xff};
      ASSERT_EQ(job.recover({&change, 1}, {}), "") << "part " << part << ", byte " << offset;
      if (!job.report().ok()) ++refused;
    }
  }
  EXPECT_GE(refused, 15U);  // magic, version, and a number of processes that is too large
}

// What lies beyond the end of a file must not be touched: it would be a SIGBUS.
TEST(DamagedJournal, FilesCutShortAnywhere) {
  DamagedJob job(scratch_folder());
  for (std::size_t part = 0; part < job.part_count(); ++part) {
    const Change change{Change::Kind::cut, part, job.part_bytes(part) / 2, 0};
    ASSERT_EQ(job.recover({&change, 1}, {}), "") << "part " << part;
    const bool refused = !job.report().ok() || !job.report().value().damage.empty();
    EXPECT_TRUE(refused) << "part " << part;
  }
}

}  // namespace
}  // namespace spillway::drain
