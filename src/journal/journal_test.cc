#include "journal/journal.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>
#include <thread>

#include "journal/pending.h"
#include "journal/record.h"
#include "journal/test_journals.h"

namespace spillway::journal {
namespace {

TEST_F(JournalTest, NewestCommittedBytesAreSeenByEveryProcess) {
  Journal& a = add_journal(4 * kSegment);
  Journal& b = add_journal(4 * kSegment);
  const std::uint32_t file = add_file(7);
  const auto first = write(a, file, list({{10, 6}}), std::byte{'a'});
  EXPECT_EQ(seen(a, file, {8, 10}), "..aaaaaa..");
  EXPECT_EQ(seen(b, file, {8, 10}), "..aaaaaa..");
  const auto second = write(b, file, list({{12, 2}, {15, 3}}), std::byte{'b'});
  EXPECT_EQ(seen(a, file, {8, 10}), "..aabbabbb");
  EXPECT_EQ(seen(b, file, {8, 10}), "..aabbabbb");
  const auto third = write(a, file, list({{13, 1}}), std::byte{'c'});
  EXPECT_EQ(seen(a, file, {8, 10}), "..aabcabbb");
  EXPECT_EQ(seen(b, file, {8, 10}), "..aabcabbb");
  EXPECT_EQ(node_->file(file).pending_records.load(), 3U);
  EXPECT_EQ(Pending(*node_, a).end(file), 18);
  EXPECT_EQ(Pending(*node_, b).hull(file), (Extent{12, 6}));
  a.retire(first[0]);
  EXPECT_EQ(seen(b, file, {8, 10}), "....bc.bbb");
  b.retire(second[0]);
  a.retire(third[0]);
  EXPECT_EQ(seen(a, file, {8, 10}), "..........");
  EXPECT_EQ(a.pending_bytes(), 0);
  node_->release_file(file);
}

TEST_F(JournalTest, FillingAndAbandonedRecordsAreNotSeen) {
  Journal& a = add_journal(4 * kSegment);
  const std::uint32_t file = add_file(7);
  write(a, file, list({{0, 4}}), std::byte{'a'});
  const auto filling = append(a, file, list({{2, 4}}), std::byte{'b'});
  EXPECT_EQ(seen(a, file, {0, 8}), "aaaa....");
  a.abandon(filling[0]);
  EXPECT_EQ(seen(a, file, {0, 8}), "aaaa....");
  EXPECT_EQ(node_->file(file).pending_records.load(), 1U);
}

TEST_F(JournalTest, ATeamCommitsItsRecordsForAllAtOnce) {
  Journal& a = add_journal(4 * kSegment);
  Journal& b = add_journal(4 * kSegment);
  const std::uint32_t file = add_file(7);
  Result<std::uint64_t> team = node_->allocate_block(4096);
  ASSERT_TRUE(team.ok());
  auto& commits = *static_cast<std::atomic<std::uint32_t>*>(node_->block(*team));
  commits = 0xffffffff;  // about to wrap
  const CommitRule rule{CommitKind::by_team, *team, 0};
  const auto in_a = append(a, file, list({{0, 3}}), std::byte{'a'}, rule);
  const auto in_b = append(b, file, list({{3, 3}}), std::byte{'b'}, rule);
  EXPECT_EQ(seen(a, file, {0, 6}), "......");
  commits = 0;
  // Valid from here on, although no owner has said so yet: a rank may have returned from the call and read.
  EXPECT_EQ(seen(a, file, {0, 6}), "aaabbb");
  EXPECT_EQ(seen(b, file, {0, 6}), "aaabbb");
  a.commit(in_a[0]);
  b.commit(in_b[0]);
  EXPECT_EQ(seen(a, file, {0, 6}), "aaabbb");
  node_->free_block(*team, 4096);
}

TEST_F(JournalTest, TheLimitHoldsAndSpaceComesBack) {
  Journal& a = add_journal(3 * kSegment);
  const std::uint32_t file = add_file(7);
  std::vector<RecordId> ids;
  const ExtentList much = list({{0, 10 * kSegment}});
  RunCursor cursor{&much, 0, 0};
  for (;;) {
    Result<Journal::Appended> appended = a.append(cursor, {file, {}, INT64_MAX});
    if (!appended.ok()) {
      EXPECT_EQ(appended.status().code(), Code::would_block);
      break;
    }
    a.commit(appended->id);
    ids.push_back(appended->id);
  }
  EXPECT_GE(a.pending_bytes(), 3 * kSegment);
  EXPECT_LE(a.pending_bytes(), 3 * (kSegment + static_cast<std::int64_t>(kSegmentSlackBytes)));
  EXPECT_EQ(a.free_bytes(), 0);
  a.retire(ids[0]);
  EXPECT_GE(a.free_bytes(), kSegment);
  EXPECT_TRUE(a.append(cursor, {file, {}, INT64_MAX}).ok());
}

TEST_F(JournalTest, TheLimitGrowsShrinksAndTurnsOff) {
  Journal& a = add_journal(kSegment);
  const std::uint32_t file = add_file(7);
  auto ids = write(a, file, list({{0, kSegment}}), std::byte{'x'});
  const ExtentList more = list({{kSegment, 4 * kSegment}});
  RunCursor cursor{&more, 0, 0};
  EXPECT_EQ(a.append(cursor, {file, {}, INT64_MAX}).status().code(), Code::would_block);
  a.set_limit(5 * kSegment);
  for (const RecordId& id : write(a, file, more, std::byte{'y'})) ids.push_back(id);
  a.set_limit(0);
  const ExtentList again = list({{0, 100}});
  RunCursor off{&again, 0, 0};
  EXPECT_EQ(a.append(off, {file, {}, INT64_MAX}).status().code(), Code::would_block);
  for (const RecordId& id : ids) a.retire(id);
  EXPECT_EQ(a.append(off, {file, {}, INT64_MAX}).status().code(), Code::would_block);
  a.set_limit(100);  // far less than a segment
  std::int64_t accepted = 0;
  RunCursor slow{&more, 0, 0};
  for (int i = 0; i < 5; ++i) {
    Result<Journal::Appended> appended = a.append(slow, {file, {}, INT64_MAX});
    ASSERT_TRUE(appended.ok()) << appended.status().to_string();
    accepted += static_cast<std::int64_t>(appended->view.header->payload_bytes);
    EXPECT_LE(appended->view.header->payload_bytes, 100U);
    a.commit(appended->id);
    a.retire(appended->id);
  }
  EXPECT_EQ(accepted, 500);
}

TEST_F(JournalTest, MemoryGoesBackWhenTheLimitShrinks) {
  Journal& a = add_journal(8 * kSegment);
  const std::uint32_t file = add_file(7);
  const auto used_blocks = [&] {
    struct stat st {};
    stat(node_->journal_path(a.process()).c_str(), &st);
    return st.st_blocks * 512;
  };
  for (const RecordId& id : write(a, file, list({{0, 8 * kSegment}}), std::byte{'x'})) a.retire(id);
  EXPECT_GE(used_blocks(), 8 * kSegment);
  a.set_limit(kSegment);
  // One segment of the limit, one for scratch, and the tables.
  EXPECT_LE(used_blocks(), 2 * (kSegment + static_cast<std::int64_t>(kSegmentSlackBytes)) + (1 << 20));
}

TEST_F(JournalTest, LargePayloadsStandInTheirPageAsInTheFile) {
  Journal& a = add_journal(8 * kSegment);
  const std::uint32_t file = add_file(7);
  for (const std::int64_t offset : {0L, 1L, 4095L, 8192L + 123}) {
    const ExtentList runs = list({{offset, 128 * 1024}});
    RunCursor cursor{&runs, 0, 0};
    Result<Journal::Appended> appended = a.append(cursor, {file, {}, INT64_MAX});
    ASSERT_TRUE(appended.ok());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(appended->view.payload) % 4096,
              static_cast<std::uintptr_t>(offset % 4096));
    a.abandon(appended->id);
  }
}

TEST_F(JournalTest, SmallRecordsShareASegment) {
  Journal& a = add_journal(kSegment);
  const std::uint32_t file = add_file(7);
  std::vector<RecordId> ids;
  for (int i = 0; i < 500; ++i) {
    const auto one = write(a, file, list({{i * 1000, 100}}), std::byte{'s'});
    ASSERT_EQ(one.size(), 1U);
    ids.push_back(one[0]);
  }
  EXPECT_TRUE(std::all_of(ids.begin(), ids.end(), [&](const RecordId& id) { return id.segment == ids[0].segment; }));
  for (const RecordId& id : ids) a.retire(id);
  EXPECT_EQ(a.free_bytes(), kSegment);
}

TEST_F(JournalTest, ASegmentIsNotRecycledUnderAReader) {
  Journal& a = add_journal(kSegment);
  Journal& b = add_journal(kSegment);
  const std::uint32_t file = add_file(7);
  const auto ids = write(a, file, list({{0, kSegment}}), std::byte{'x'});
  auto section = std::make_unique<ReadSection>(*node_, b.process(), ReaderRole::application);
  a.retire(ids[0]);
  const ExtentList runs = list({{0, 10}});
  RunCursor cursor{&runs, 0, 0};
  EXPECT_EQ(a.append(cursor, {file, {}, INT64_MAX}).status().code(), Code::would_block);
  section.reset();
  EXPECT_TRUE(a.append(cursor, {file, {}, INT64_MAX}).ok());
}

TEST_F(JournalTest, ScratchIsNeverPending) {
  Journal& a = add_journal(0);
  const ExtentList runs = list({{0, kSegment}});
  RunCursor cursor{&runs, 0, 0};
  Result<Journal::Appended> scratch = a.append(cursor, {kNone, {}, INT64_MAX});
  ASSERT_TRUE(scratch.ok()) << scratch.status().to_string();
  EXPECT_EQ(a.pending_bytes(), 0);
  const ExtentList more = list({{0, 1}});
  RunCursor second{&more, 0, 0};
  EXPECT_TRUE(a.append(second, {kNone, {}, INT64_MAX}).ok());  // in the slack
  const ExtentList much = list({{0, kSegment}});
  RunCursor third{&much, 0, 0};
  EXPECT_EQ(a.append(third, {kNone, {}, INT64_MAX}).status().code(), Code::would_block);
  a.abandon(scratch->id);
}

TEST_F(JournalTest, DamagedHeadersEndTheWalkWithoutHarm) {
  Journal& a = add_journal(2 * kSegment);
  const std::uint32_t file = add_file(7);
  std::vector<RecordId> ids;
  for (int i = 0; i < 20; ++i)
    ids.push_back(write(a, file, list({{i * 100, 50}, {i * 100 + 60, 20}}), std::byte{'d'})[0]);
  const std::uint32_t segment = ids[0].segment;
  const auto journal = node_->journal(a.process());
  const std::uint64_t tail = journal->segment(segment).tail.load();
  const std::uint64_t size = journal->header().segment_bytes;
  const std::vector<std::byte> original(journal->segment_data(segment), journal->segment_data(segment) + size);
  std::mt19937_64 random(20261120);
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::byte> bytes = original;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) bytes[random() % tail] ^= static_cast<std::byte>(1 + random() % 255);
    std::uint64_t last_end = 0;
    const Status status = walk_segment({bytes.data(), tail, size}, [&](const RecordView& record, std::uint64_t offset) {
      EXPECT_EQ(offset, last_end);
      last_end = offset + record.header->record_bytes;
      EXPECT_LE(last_end, tail);
      return true;
    });
    EXPECT_TRUE(status.ok() || status.code() == Code::corrupt);
  }
  EXPECT_EQ(walk_segment({journal->segment_data(segment), size + 1, size},
                         [](const RecordView&, std::uint64_t) { return true; })
                .code(),
            Code::corrupt);
}

// Every owner writes and retires at random; at every step each process must see what a plain byte array says, with '.' where the
// bytes have reached the file.
TEST_F(JournalTest, RandomWritesAgainstAByteArray) {
  constexpr int kOwners = 3;
  constexpr std::int64_t kFileBytes = 400;
  const char* seed_text = std::getenv("SPILLWAY_TEST_SEED");
  const unsigned long seed = seed_text != nullptr ? std::strtoul(seed_text, nullptr, 10) : 1;
  SCOPED_TRACE("SPILLWAY_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < kOwners; ++i) add_journal(8 * kSegment);
  const std::uint32_t file = add_file(7);

  struct Record {
    int owner;
    RecordId id;
    ExtentList runs;
    std::uint64_t sequence;
  };
  std::vector<Record> live;
  std::string model(kFileBytes, '.');
  std::vector<std::uint64_t> newest(kFileBytes, 0);
  for (int step = 0; step < 1200; ++step) {
    if (random() % 3 != 0 || live.empty()) {
      std::vector<Extent> extents;
      for (std::uint64_t i = 0; i < 1 + random() % 3; ++i) {
        extents.push_back(
            {static_cast<std::int64_t>(random() % (kFileBytes - 40)), 1 + static_cast<std::int64_t>(random() % 40)});
      }
      const ExtentList runs = list(std::move(extents));
      const int owner = static_cast<int>(random() % kOwners);
      const char fill = static_cast<char>('a' + random() % 26);
      const auto ids = write(*journals_[static_cast<std::size_t>(owner)], file, runs, static_cast<std::byte>(fill));
      ASSERT_EQ(ids.size(), 1U);
      const std::uint64_t sequence = journals_[static_cast<std::size_t>(owner)]->view(ids[0]).header->sequence;
      for (const Extent& run : runs) {
        for (std::int64_t i = run.offset; i < run.end(); ++i) {
          model[static_cast<std::size_t>(i)] = fill;
          newest[static_cast<std::size_t>(i)] = sequence;
        }
      }
      live.push_back({owner, ids[0], runs, sequence});
    } else {
      // The oldest of those that overlap goes first, as the drain does it: simply the oldest of all.
      const Record record = live.front();
      live.erase(live.begin());
      journals_[static_cast<std::size_t>(record.owner)]->retire(record.id);
      for (const Extent& run : record.runs) {
        for (std::int64_t i = run.offset; i < run.end(); ++i) {
          if (newest[static_cast<std::size_t>(i)] == record.sequence) model[static_cast<std::size_t>(i)] = '.';
        }
      }
    }
    for (const auto& journal : journals_) ASSERT_EQ(seen(*journal, file, {0, kFileBytes}), model) << "step " << step;
  }
}

// One owner writes the whole range with growing numbers and "drains" it into an array; readers must never see an older number
// than one they know to be complete.
TEST_F(JournalTest, ReadersNeverMissWhatIsMovingIntoTheFile) {
  Journal& owner = add_journal(2 * kSegment);
  Journal& other = add_journal(2 * kSegment);
  const std::uint32_t file = add_file(7);
  std::atomic<std::uint64_t> in_file{0};
  std::atomic<std::uint64_t> completed{0};
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    const ExtentList runs = list({{0, 8}});
    for (std::uint64_t value = 1; value <= 20000; ++value) {
      RunCursor cursor{&runs, 0, 0};
      Result<Journal::Appended> appended = owner.append(cursor, {file, {}, INT64_MAX});
      while (!appended.ok()) {
        owner.wait_for_space(100000);
        appended = owner.append(cursor, {file, {}, INT64_MAX});
      }
      std::memcpy(appended->view.payload, &value, sizeof value);
      owner.commit(appended->id);
      completed.store(value);
      in_file.store(value);  // the drain has written it
      owner.retire(appended->id);
    }
    stop = true;
  });
  Pending pending(*node_, other);
  while (!stop) {
    const std::uint64_t known = completed.load();
    std::uint64_t value = 0;
    const ExtentList covered = pending.read(file, list({{0, 8}}), [&](std::int64_t, std::span<const std::byte> bytes) {
      std::memcpy(&value, bytes.data(), 8);
    });
    if (covered.empty()) value = in_file.load();
    ASSERT_GE(value, known);
  }
  writer.join();
}

TEST_F(JournalTest, ASlotLivesAsLongAsAnythingIsOpenOrPending) {
  Journal& a = add_journal(2 * kSegment);
  const std::uint32_t file = add_file(7);
  const auto ids = write(a, file, list({{0, 10}}), std::byte{'x'});
  node_->release_file(file);  // closed, still pending
  EXPECT_EQ(node_->find_file({1, 7}), std::optional(file));
  a.retire(ids[0]);
  EXPECT_EQ(node_->find_file({1, 7}), std::nullopt);
  EXPECT_EQ(add_file(8), file);  // reused
}

TEST_F(JournalTest, TheLastProcessRemovesTheJobsFiles) {
  const std::string directory = node_->directory();
  add_journal(kSegment);
  EXPECT_TRUE(std::filesystem::exists(directory + "/journal.0"));
  journals_.clear();
  EXPECT_FALSE(std::filesystem::exists(directory + "/journal.0"));
  Result<std::unique_ptr<Node>> second = Node::attach(shm_dir_, "job");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ((*second)->header().nonce[0], node_->header().nonce[0]);
  second->reset();
  node_.reset();
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST_F(JournalTest, PendingBytesKeepTheJournalForRecovery) {
  Journal& a = add_journal(kSegment);
  const std::uint32_t file = add_file(7);
  write(a, file, list({{0, 10}}), std::byte{'x'});
  const std::string path = node_->journal_path(a.process());
  const std::string directory = node_->directory();
  journals_.clear();
  node_.reset();
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(directory + "/node"));
}

TEST_F(JournalTest, TablesOfAnotherVersionOrWithImpossibleCountsAreRefusedAndLeftAlone) {
  add_journal(kSegment);  // before it has one, a process keeps others from looking
  const std::string table = node_->directory() + "/node";
  const auto refused = [&] {
    EXPECT_EQ(Node::open_left_behind(node_->directory()).status().code(), Code::corrupt);
    EXPECT_EQ(Node::attach(shm_dir_, "job").status().code(), Code::corrupt);
    EXPECT_TRUE(std::filesystem::exists(table));
  };
  NodeHeader& header = node_->header();
  header.version = kVersion + 1;
  refused();
  header.version = kVersion;
  header.processes = kProcessesMax + 1;
  refused();
  header.processes = 1;
  header.files = kFilesMax + 1;
  refused();
  header.files = 0;
  EXPECT_TRUE(Node::attach(shm_dir_, "job").ok());
}

TEST_F(JournalTest, SharedBlocksAreZeroedAndReused) {
  Result<std::uint64_t> block = node_->allocate_block(10000);
  ASSERT_TRUE(block.ok());
  auto* bytes = static_cast<unsigned char*>(node_->block(*block));
  EXPECT_EQ(std::count(bytes, bytes + 10000, 0), 10000);
  std::memset(bytes, 0xff, 10000);
  node_->free_block(*block, 10000);
  Result<std::uint64_t> again = node_->allocate_block(9000);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *block);
  EXPECT_EQ(std::count(bytes, bytes + 10000, 0), 10000);
}

}  // namespace
}  // namespace spillway::journal
