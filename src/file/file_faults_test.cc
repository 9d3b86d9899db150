// What the program is told, and what becomes of its bytes, when the storage fails: under the drain, under direct writes, and in every
// other operation, on one rank or on all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "drain/recovery.h"
#include "file/test_cluster.h"

namespace spillway::file {
namespace {

using storage::Operation;

constexpr std::int64_t kBytes = 3000;  // of each rank, one after the other in the file

// Collective: what every rank returned, which must be the same.
Code everywhere(OpenFile& file, const Status& status) {
  const Code mine = status.code();
  comm::Gathered all;
  EXPECT_TRUE(file.comm().allgatherv(comm::bytes_of(mine), all).ok());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    EXPECT_EQ(comm::value_of<Code>(all[rank]), mine)
        << "rank " << rank << " and rank " << file.comm().rank() << ": " << status.to_string();
  }
  return mine;
}

class FileFaults : public testing::TestWithParam<Shape> {
 protected:
  FileFaults() : cluster_(GetParam()) {}

  static Status write_all(OpenFile& file, char fill, std::int64_t bytes = kBytes) {
    std::vector<std::byte> memory(static_cast<std::size_t>(bytes), static_cast<std::byte>(fill));
    const view::MemoryLayout layout = view::MemoryLayout::contiguous_bytes(memory.data(), bytes);
    return file.write_all(transfer(file.comm().rank() * bytes, layout, bytes));
  }
  // Reads this rank's part and says what is in it; '?' when it is not all the same byte.
  static char read_all(OpenFile& file) {
    std::vector<char> memory(kBytes, '?');
    const view::MemoryLayout layout = view::MemoryLayout::contiguous_bytes(memory.data(), kBytes);
    const Result<std::int64_t> got = file.read_all(transfer(file.comm().rank() * kBytes, layout, kBytes));
    EXPECT_TRUE(got.ok()) << got.status().to_string();
    EXPECT_EQ(got.ok() ? got.value() : 0, kBytes);
    return memory == std::vector<char>(kBytes, memory[0]) ? memory[0] : '?';
  }
  [[nodiscard]] std::string filled(char fill, std::int64_t bytes = kBytes) const {
    return std::string(static_cast<std::size_t>(cluster_.ranks() * bytes), fill);
  }
  // From now on, for all ranks.
  void fail(OpenFile& file, const std::vector<storage::Fault>& faults) {
    EXPECT_TRUE(file.comm().barrier().ok());
    if (file.comm().rank() == 0) {
      cluster_.faults().clear();
      for (const storage::Fault& fault : faults) cluster_.faults().add(fault);
    }
    EXPECT_TRUE(file.comm().barrier().ok());
  }

  Cluster cluster_;
};
class StagedFaults : public FileFaults {};
class TinyBufferFaults : public FileFaults {};
class DirectFaults : public FileFaults {};

TEST_P(StagedFaults, TheErrorRepeatsOnEveryRankUntilTheBytesCouldBeWritten) {
  for (const int error : {ENOSPC, EIO, EDQUOT, EINTR}) {
    const Code expected = base::code_of_errno(error);
    const std::string name = "data" + std::to_string(error);
    cluster_.run([&](int, const Cluster::Open& open) {
      auto file = open(name, {.create = true});
      fail(*file, {{.operation = Operation::write, .errno_value = error, .count = -1}});
      EXPECT_EQ(everywhere(*file, write_all(*file, 'a')), Code::ok);
      EXPECT_EQ(everywhere(*file, file->sync()), expected);
      EXPECT_EQ(everywhere(*file, write_all(*file, 'x')), expected);
      EXPECT_EQ(everywhere(*file, file->sync()), expected);
      EXPECT_EQ(everywhere(*file, file->set_size(10, {})), expected);
      EXPECT_EQ(everywhere(*file, file->sync()), expected);
      EXPECT_EQ(read_all(*file), 'a');  // they are all still there
      EXPECT_EQ(file->size().value(), cluster_.ranks() * kBytes);
      fail(*file, {});
      EXPECT_EQ(everywhere(*file, file->sync()), Code::ok);
      EXPECT_EQ(cluster_.content(name), filled('a'));
      EXPECT_EQ(everywhere(*file, write_all(*file, 'b')), Code::ok);
      EXPECT_EQ(everywhere(*file, file->close()), Code::ok);
    });
    for (int rank = 0; rank < cluster_.ranks(); ++rank) {
      EXPECT_TRUE(cluster_.runtime(rank).drain().wait(0, [] {}).ok());
    }
    if (HasFailure()) return;
  }
  cluster_.finish();
  for (const int error : {ENOSPC, EIO, EDQUOT, EINTR}) {
    EXPECT_EQ(cluster_.content("data" + std::to_string(error)), filled('b'));
  }
}

TEST_P(StagedFaults, OneFailedWriteOfOneRankIsToldOnceToAll) {
  for (const bool torn : {false, true}) {
    const std::string name = torn ? "torn" : "whole";
    cluster_.run([&](int, const Cluster::Open& open) {
      auto file = open(name, {.create = true});
      fail(*file, {{.operation = Operation::write, .errno_value = ENOSPC, .count = 1, .torn = torn}});
      EXPECT_EQ(everywhere(*file, write_all(*file, 'a')), Code::ok);
      EXPECT_EQ(everywhere(*file, file->sync()), Code::no_space);
      EXPECT_EQ(everywhere(*file, file->sync()), Code::ok);
      EXPECT_EQ(cluster_.content(name), filled('a'));
      EXPECT_EQ(everywhere(*file, write_all(*file, 'b')), Code::ok);
      EXPECT_EQ(everywhere(*file, file->sync()), Code::ok);
      EXPECT_EQ(everywhere(*file, file->close()), Code::ok);
      EXPECT_EQ(cluster_.content(name), filled('b'));
    });
    if (HasFailure()) return;
  }
}

TEST_P(StagedFaults, HalfDoneWritesAreDoneAgain) {
  cluster_.run([&](int, const Cluster::Open& open) {
    auto file = open("data", {.create = true});
    fail(*file, {{.operation = Operation::write, .errno_value = 0, .count = -1, .torn = true}});
    for (const char fill : {'a', 'b', 'c'}) EXPECT_EQ(everywhere(*file, write_all(*file, fill)), Code::ok);
    EXPECT_EQ(everywhere(*file, file->sync()), Code::ok);
    EXPECT_EQ(cluster_.content("data"), filled('c'));
    EXPECT_EQ(everywhere(*file, file->close()), Code::ok);
  });
}

TEST_P(StagedFaults, ClosingTellsAndTheJournalKeepsTheBytesForRecovery) {
  cluster_.run([&](int, const Cluster::Open& open) {
    auto file = open("data", {.create = true});
    fail(*file, {{.operation = Operation::write, .errno_value = EIO, .count = -1}});
    EXPECT_EQ(everywhere(*file, write_all(*file, 'a')), Code::ok);
    EXPECT_EQ(everywhere(*file, file->sync()), Code::io);
    EXPECT_EQ(everywhere(*file, file->close()), Code::io);
  });
  std::int64_t pending = 0;
  for (int rank = 0; rank < cluster_.ranks(); ++rank) pending += cluster_.runtime(rank).journal().pending_bytes();
  EXPECT_EQ(pending, cluster_.ranks() * kBytes);
  std::vector<std::string> jobs;
  for (int rank = 0; rank < GetParam().nodes; ++rank) jobs.push_back(cluster_.node(rank).directory());
  cluster_.finish();  // tries once more, in vain
  const auto mended = storage::make_posix_backend(base::DirectIo::off);
  for (const std::string& job : jobs) {
    const Result<drain::RecoveryReport> report = drain::recover_job(job, *mended, {});
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_TRUE(report.value().removed);
  }
  EXPECT_EQ(cluster_.content("data"), filled('a'));
}

TEST_P(StagedFaults, AnErrorThatNobodyAskedForIsToldByClose) {
  cluster_.run([&](int rank, const Cluster::Open& open) {
    auto file = open("data", {.create = true});
    fail(*file, {{.operation = Operation::write, .errno_value = ENOSPC, .count = -1}});
    EXPECT_EQ(everywhere(*file, write_all(*file, 'a')), Code::ok);
    // The drains have tried and failed, wherever there was something to write.
    (void)cluster_.runtime(rank).drain().wait(0, [] {});
    EXPECT_TRUE(file->comm().barrier().ok());
    EXPECT_EQ(everywhere(*file, file->close()), Code::no_space);
  });
  cluster_.faults().clear();
  cluster_.finish();
  EXPECT_EQ(cluster_.content("data"), filled('a'));
}

TEST_P(StagedFaults, DeletingDropsWhatCouldNotBeWritten) {
  cluster_.run([&](int rank, const Cluster::Open& open) {
    auto file = open("data", {.create = true, .delete_on_close = true});
    fail(*file, {{.operation = Operation::write, .errno_value = ENOSPC, .count = -1}});
    EXPECT_EQ(everywhere(*file, write_all(*file, 'a')), Code::ok);
    EXPECT_EQ(everywhere(*file, file->sync()), Code::no_space);
    EXPECT_EQ(everywhere(*file, file->close()), Code::no_space);
    EXPECT_EQ(cluster_.runtime(rank).journal().pending_bytes(), 0);
  });
  EXPECT_FALSE(std::filesystem::exists(cluster_.path("data")));
}

TEST_P(TinyBufferFaults, AFullBufferThatCannotBeEmptiedIsAnErrorNotAHang) {
  constexpr std::int64_t kMuch = 100000;
  cluster_.run([&](int, const Cluster::Open& open) {
    auto file = open("data", {.create = true});
    fail(*file, {{.operation = Operation::write, .errno_value = ENOSPC, .count = -1}});
    int failures = 0;
    for (int i = 0; i < 5; ++i) failures += everywhere(*file, write_all(*file, 'x', kMuch)) == Code::ok ? 0 : 1;
    EXPECT_EQ(failures, 5);
    EXPECT_EQ(everywhere(*file, file->sync()), Code::no_space);
    fail(*file, {});
    EXPECT_EQ(everywhere(*file, file->sync()), Code::ok);
    EXPECT_EQ(everywhere(*file, write_all(*file, 'a', kMuch)), Code::ok);
    EXPECT_EQ(everywhere(*file, file->sync()), Code::ok);
    EXPECT_EQ(cluster_.content("data"), filled('a', kMuch));
    EXPECT_EQ(everywhere(*file, file->close()), Code::ok);
  });
}

TEST_P(DirectFaults, TheWriteItselfFailsOnEveryRank) {
  for (const std::int64_t skip : {0, 1}) {
    cluster_.run([&](int, const Cluster::Open& open) {
      auto file = open("data", {.create = true});
      fail(*file, {{.operation = Operation::write,
                    .errno_value = EDQUOT,
                    .skip = std::min<std::int64_t>(skip, cluster_.ranks() - 1),
                    .count = 1}});
      EXPECT_EQ(everywhere(*file, write_all(*file, 'x')), Code::quota);
      EXPECT_EQ(everywhere(*file, write_all(*file, 'a')), Code::ok);
      EXPECT_EQ(everywhere(*file, file->sync()), Code::ok);
      EXPECT_EQ(cluster_.content("data"), filled('a'));
      EXPECT_EQ(everywhere(*file, file->close()), Code::ok);
    });
  }
}

// --- the other operations, on any one rank ---

TEST_P(FileFaults, OpeningFailsEverywhereOrNowhere) {
  for (const std::int64_t skip : {0, cluster_.ranks() - 1}) {
    for (const Operation operation : {Operation::open, Operation::attributes}) {
      for (const bool faulty : {true, false}) {
        cluster_.faults().clear();
        if (faulty) cluster_.faults().add({.operation = operation, .errno_value = EACCES, .skip = skip, .count = 1});
        std::vector<Code> codes(static_cast<std::size_t>(cluster_.ranks()));
        cluster_.run([&](int rank, const Cluster::Open&) {
          Result<std::unique_ptr<OpenFile>> file = cluster_.try_open(rank, "data", {.create = true});
          codes[static_cast<std::size_t>(rank)] = file.status().code();
          if (!file.ok()) return;
          EXPECT_TRUE((*file)->close().ok());
        });
        EXPECT_EQ(codes, std::vector<Code>(codes.size(), faulty ? Code::access_denied : Code::ok));
      }
    }
  }
}

TEST_P(FileFaults, EveryOtherOperationFailsOnEveryRankAndOnlyOnce) {
  cluster_.run([&](int, const Cluster::Open& open) {
    auto file = open("data", {.create = true});
    EXPECT_EQ(everywhere(*file, write_all(*file, 'a')), Code::ok);
    EXPECT_EQ(everywhere(*file, file->sync()), Code::ok);
    const auto fails_once = [&](Operation operation, std::int64_t skip, const std::function<Status()>& call) {
      fail(*file, {{.operation = operation, .errno_value = EIO, .skip = skip, .count = 1}});
      EXPECT_EQ(everywhere(*file, call()), Code::io) << static_cast<int>(operation);
      fail(*file, {});
      EXPECT_EQ(everywhere(*file, call()), Code::ok) << static_cast<int>(operation);
    };
    const std::int64_t last = cluster_.ranks() - 1;
    for (const std::int64_t skip : {std::int64_t{0}, last}) {
      fails_once(Operation::sync, skip, [&] { return file->sync(); });
      fails_once(Operation::attributes, skip, [&] {
        std::vector<std::byte> memory(kBytes);
        const view::MemoryLayout layout = view::MemoryLayout::contiguous_bytes(memory.data(), kBytes);
        return file->read_all(transfer(0, layout, kBytes)).status();
      });
      fails_once(Operation::lock, skip, [&] { return file->set_atomicity(true, {}); });
      EXPECT_EQ(everywhere(*file, file->set_atomicity(false, {})), Code::ok);
    }
    fails_once(Operation::truncate, 0, [&] { return file->set_size(100000, {}); });
    fails_once(Operation::preallocate, 0, [&] { return file->preallocate(200000, {}); });
    EXPECT_EQ(read_all(*file), 'a');
    EXPECT_EQ(everywhere(*file, file->close()), Code::ok);
  });
  EXPECT_EQ(cluster_.content("data").substr(0, filled('a').size()), filled('a'));
}

std::string name_of_fault_shape(const testing::TestParamInfo<Shape>& shape) {
  return std::to_string(shape.param.nodes) + "x" + std::to_string(shape.param.ranks_per_node) +
         (shape.param.stage == base::Stage::none ? "_direct" : "_staged") + std::to_string(shape.param.memory_bytes) +
         (shape.param.algorithm == base::AlgorithmChoice::two_phase ? "_two_phase" : "") +
         (shape.param.close == base::ClosePolicy::drained ? "_drained" : "");
}

constexpr auto kMemory = base::Stage::memory;
constexpr auto kTwoPhase = base::AlgorithmChoice::two_phase;
constexpr auto kAutomatic = base::AlgorithmChoice::automatic;

INSTANTIATE_TEST_SUITE_P(All, StagedFaults,
                         testing::Values(Shape{1, 1}, Shape{1, 4}, Shape{2, 2}, Shape{3, 1},
                                         Shape{1, 3, kMemory, 1 << 20, kTwoPhase},
                                         Shape{2, 2, kMemory, 1 << 20, kTwoPhase},
                                         Shape{1, 2, kMemory, 1 << 20, kAutomatic, base::ClosePolicy::drained}),
                         name_of_fault_shape);
INSTANTIATE_TEST_SUITE_P(All, TinyBufferFaults,
                         testing::Values(Shape{1, 1, kMemory, 4000}, Shape{1, 4, kMemory, 65536},
                                         Shape{2, 2, kMemory, 4000}, Shape{1, 3, kMemory, 4000, kTwoPhase},
                                         Shape{2, 2, kMemory, 65536, kTwoPhase}),
                         name_of_fault_shape);
INSTANTIATE_TEST_SUITE_P(All, DirectFaults,
                         testing::Values(Shape{1, 1, base::Stage::none, 0}, Shape{1, 4, base::Stage::none, 0},
                                         Shape{2, 2, base::Stage::none, 0, kTwoPhase}),
                         name_of_fault_shape);
INSTANTIATE_TEST_SUITE_P(All, FileFaults,
                         testing::Values(Shape{1, 1}, Shape{1, 4}, Shape{2, 2}, Shape{1, 2, base::Stage::none, 0}),
                         name_of_fault_shape);

}  // namespace
}  // namespace spillway::file
