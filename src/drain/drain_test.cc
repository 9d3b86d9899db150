#include "drain/drain.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "storage/fault_backend.h"
#include "storage/posix_backend.h"

namespace spillway::drain {
namespace {

using extent::Extent;
using extent::ExtentList;
using journal::RecordId;

constexpr std::int64_t kSegment = 256 * 1024;

// One process of the pretended node: a journal and its drain.
struct Process {
  Process(journal::Node& node, const base::Clock& clock) : activity(clock) {
    Result<std::unique_ptr<journal::Journal>> made = journal::Journal::create(
        node,
        {.segment_payload_bytes = kSegment, .capacity_bytes = 16 * kSegment, .scratch_bytes = kSegment, .rank = 0});
    journal = std::move(made).value();
    journal->set_limit(8 * kSegment);
    pending = std::make_unique<journal::Pending>(node, *journal);
    drain = std::make_unique<Drain>(Drain::Parts{node, *journal, *pending, activity, clock, nullptr});
    drain->start();
  }
  ~Process() { drain->finish(); }

  base::Activity activity;
  std::unique_ptr<journal::Journal> journal;
  std::unique_ptr<journal::Pending> pending;
  std::unique_ptr<Drain> drain;
};

class DrainTest : public testing::Test {
 protected:
  DrainTest() {
    std::string name = std::filesystem::temp_directory_path() / "spillway-drain-XXXXXX";
    directory_ = mkdtemp(name.data());
    node_ = std::move(*journal::Node::attach(directory_, "job"));
    backend_ = storage::make_fault_backend(
        std::shared_ptr<storage::Backend>(storage::make_posix_backend(base::DirectIo::off)), plan_);
  }
  ~DrainTest() override {
    processes_.clear();
    node_.reset();
    std::filesystem::remove_all(directory_);
  }
  Process& add_process() {
    processes_.push_back(std::make_unique<Process>(*node_, base::system_clock()));
    return *processes_.back();
  }
  std::shared_ptr<Target> open(const std::string& name) {
    auto target = std::make_shared<Target>();
    target->path = directory_ + "/" + name;
    target->file = std::move(*backend_->open(target->path, {.create = true}));
    const auto identity = target->file->attributes()->identity;
    target->slot = *node_->acquire_file({identity.device, identity.inode}, target->path);
    return target;
  }
  static void write(Process& process, const std::shared_ptr<Target>& target, const Extent& extent, char fill) {
    const ExtentList runs = ExtentList::from_unsorted({extent});
    extent::RunCursor cursor{&runs, 0, 0};
    while (!cursor.at_end()) {
      Result<journal::Journal::Appended> appended = process.journal->append(cursor, {target->slot, {}, INT64_MAX});
      ASSERT_TRUE(appended.ok()) << appended.status().to_string();
      std::memset(appended->view.payload, fill, appended->view.header->payload_bytes);
      process.journal->commit(appended->id);
      process.drain->submit(appended->id, target);
    }
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void no_progress() {}

  std::string directory_;
  std::shared_ptr<storage::FaultPlan> plan_ = std::make_shared<storage::FaultPlan>();
  std::shared_ptr<storage::Backend> backend_;
  std::unique_ptr<journal::Node> node_;
  std::vector<std::unique_ptr<Process>> processes_;
};

TEST_F(DrainTest, BytesArriveInOrderAndTheJournalEmpties) {
  Process& process = add_process();
  auto target = open("a");
  write(process, target, {0, 1000}, 'a');
  write(process, target, {500, 1000}, 'b');
  write(process, target, {700, 100}, 'c');
  ASSERT_TRUE(process.drain->wait(target->slot, no_progress).ok());
  EXPECT_EQ(content("a"),
            std::string(500, 'a') + std::string(200, 'b') + std::string(100, 'c') + std::string(700, 'b'));
  EXPECT_EQ(process.journal->pending_bytes(), 0);
  EXPECT_EQ(node_->file(target->slot).pending_records.load(), 0U);
}

TEST_F(DrainTest, NeighboursGoInOneWrite) {
  Process& process = add_process();
  auto target = open("a");
  std::atomic<int> writes{0};
  plan_->set_observer([&](storage::Operation operation, const std::string&) {
    writes += operation == storage::Operation::write ? 1 : 0;
  });
  process.drain->pause();
  for (int i = 0; i < 100; ++i) write(process, target, {i * 50, 50}, static_cast<char>('a' + i % 26));
  process.drain->resume();
  ASSERT_TRUE(process.drain->wait(target->slot, no_progress).ok());
  EXPECT_EQ(content("a").size(), 5000U);
  EXPECT_EQ(content("a")[4999], static_cast<char>('a' + 99 % 26));
  EXPECT_LE(writes.load(), 2);  // the first record may have gone before the pause
}

TEST_F(DrainTest, AFailureIsLatchedForTheNodeAndTheBytesStayUntilRetried) {
  Process& process = add_process();
  Process& other = add_process();
  auto target = open("a");
  auto unharmed = open("b");
  plan_->add({.operation = storage::Operation::write, .errno_value = ENOSPC, .count = 1, .path_substring = "/a"});
  process.drain->pause();
  write(process, target, {0, 300000}, 'a');
  write(process, unharmed, {0, 100}, 'b');
  process.drain->resume();
  EXPECT_EQ(process.drain->wait(target->slot, no_progress).code(), Code::no_space);
  EXPECT_TRUE(process.drain->wait(unharmed->slot, no_progress).ok());
  EXPECT_EQ(content("b"), std::string(100, 'b'));
  const journal::PackedError error =
      other.pending != nullptr ? node_->file(target->slot).error.load() : journal::PackedError{};
  EXPECT_EQ(static_cast<Code>(error.code), Code::no_space);
  EXPECT_EQ(error.epoch, 1U);
  EXPECT_EQ(node_->file(target->slot).stuck_owners.load(), 1U);
  EXPECT_EQ(process.drain->all_stuck(target->slot).code(), Code::no_space);
  EXPECT_EQ(process.drain->all_stuck(unharmed->slot).code(), Code::no_space);
  EXPECT_EQ(process.journal->pending_bytes(), 300000);
  EXPECT_EQ(process.activity.summary().errors, 1);
  // What comes later waits behind it, in order.
  write(process, target, {10, 5}, 'z');
  process.drain->retry(target->slot);
  ASSERT_TRUE(process.drain->wait(target->slot, no_progress).ok());
  EXPECT_EQ(content("a"), std::string(10, 'a') + "zzzzz" + std::string(299985, 'a'));
  EXPECT_EQ(node_->file(target->slot).stuck_owners.load(), 0U);
  EXPECT_TRUE(process.drain->all_stuck(target->slot).ok());
}

TEST_F(DrainTest, TheTargetIsClosedBehindItsBytes) {
  Process& process = add_process();
  auto target = open("a");
  std::vector<storage::Operation> order;
  plan_->set_observer([&](storage::Operation operation, const std::string&) { order.push_back(operation); });
  process.drain->pause();
  write(process, target, {0, 10}, 'a');
  process.drain->submit_close(target);
  const std::uint32_t slot = target->slot;
  std::weak_ptr<Target> watched = target;
  target.reset();
  process.drain->resume();
  ASSERT_TRUE(process.drain->wait(slot, no_progress).ok());
  EXPECT_EQ(content("a"), std::string(10, 'a'));
  ASSERT_EQ(order.size(), 2U);
  EXPECT_EQ(order[0], storage::Operation::write);
  EXPECT_EQ(order[1], storage::Operation::close);
  process.drain->finish();  // the thread lets go of it right after
  EXPECT_TRUE(watched.expired());
}

TEST_F(DrainTest, DiscardDropsWhatLiesAboveAndKeepsTheRest) {
  Process& process = add_process();
  auto target = open("a");
  process.drain->pause();
  write(process, target, {0, 100}, 'a');
  write(process, target, {1000, 100}, 'b');
  write(process, target, {50, 100}, 'c');
  process.drain->discard(target->slot, 120);
  process.drain->resume();
  ASSERT_TRUE(process.drain->wait(target->slot, no_progress).ok());
  EXPECT_EQ(content("a"), std::string(50, 'a') + std::string(100, 'c'));
  EXPECT_EQ(process.journal->pending_bytes(), 0);
}

TEST_F(DrainTest, OlderBytesOfAnotherProcessGoFirst) {
  Process& early = add_process();
  Process& late = add_process();
  auto first = open("a");
  auto second = open("a");
  ASSERT_EQ(first->slot, second->slot);
  early.drain->pause();
  std::atomic<int> writes{0};
  plan_->set_observer([&](storage::Operation operation, const std::string&) {
    writes += operation == storage::Operation::write ? 1 : 0;
  });
  write(early, first, {0, 100}, 'a');
  write(late, second, {50, 100}, 'b');
  write(late, second, {500, 10}, 'c');
  // The other's thread has looked at what is older and begun to wait for it.
  while (node_->header().retired_waiters.load() == 0) std::this_thread::yield();
  EXPECT_EQ(writes.load(), 0);
  EXPECT_EQ(content("a"), "");
  early.drain->resume();
  ASSERT_TRUE(late.drain->wait(second->slot, no_progress).ok());
  EXPECT_EQ(content("a").substr(0, 150), std::string(50, 'a') + std::string(100, 'b'));
}

// Threads of a process may submit in the other order than they appended in: nobody may wait for ever, and the newest bytes win.
TEST_F(DrainTest, RecordsSubmittedOutOfOrderDoNotMakeProcessesWaitForEachOther) {
  Process& p = add_process();
  Process& q = add_process();
  const auto target = open("data");
  const auto append = [&](Process& process, const Extent& extent, char fill) {
    const ExtentList runs = ExtentList::from_unsorted({extent});
    extent::RunCursor cursor{&runs, 0, 0};
    const auto appended = process.journal->append(cursor, {target->slot, {}, INT64_MAX});
    std::memset(appended.value().view.payload, fill, appended.value().view.header->payload_bytes);
    process.journal->commit(appended.value().id);
    return appended.value().id;
  };
  for (const bool queued : {true, false}) {
    if (queued) p.drain->pause();
    if (queued) q.drain->pause();
    const RecordId x = append(p, {0, 10}, 'x');
    const RecordId z = append(q, {100, 10}, 'z');
    const RecordId y = append(p, {100, 10}, 'y');
    const RecordId w = append(q, {0, 10}, 'w');
    p.drain->submit(y, target);  // which waits for z
    q.drain->submit(w, target);  // which waits for x
    p.drain->submit(x, target);
    q.drain->submit(z, target);
    if (queued) p.drain->resume();
    if (queued) q.drain->resume();
    EXPECT_TRUE(p.drain->wait(target->slot, [] {}).ok());
    EXPECT_TRUE(q.drain->wait(target->slot, [] {}).ok());
    EXPECT_EQ(content("data").substr(0, 10), std::string(10, 'w'));
    EXPECT_EQ(content("data").substr(100, 10), std::string(10, 'y'));
  }
}

TEST_F(DrainTest, FinishTriesOnceMoreAndThenLeavesTheBytesBehind) {
  auto process = std::make_unique<Process>(*node_, base::system_clock());
  auto target = open("a");
  plan_->add({.operation = storage::Operation::write, .errno_value = EIO, .count = -1});
  write(*process, target, {0, 100}, 'a');
  EXPECT_EQ(process->drain->wait(target->slot, no_progress).code(), Code::io);
  const std::string journal_path = node_->journal_path(process->journal->process());
  process.reset();
  EXPECT_EQ(plan_->injected(), 2);
  EXPECT_TRUE(std::filesystem::exists(journal_path));
}

TEST_F(DrainTest, ManyProcessesOverwritingEachOtherEndAsTheLastOnesSay) {
  constexpr int kProcesses = 4;
  constexpr int kRounds = 60;
  std::vector<Process*> ranks;
  std::vector<std::shared_ptr<Target>> targets;
  for (int i = 0; i < kProcesses; ++i) {
    ranks.push_back(&add_process());
    targets.push_back(open("a"));
  }
  std::string model(4096, '\0');
  for (int round = 0; round < kRounds; ++round) {
    const auto i = static_cast<std::size_t>(round * 7 % kProcesses);
    const Extent extent{(round * 37) % 2000, 1 + (round * 53) % 2000};
    const char fill = static_cast<char>('A' + round);
    write(*ranks[i], targets[i], extent, fill);
    std::fill_n(model.begin() + extent.offset, extent.length, fill);
  }
  for (std::size_t i = 0; i < kProcesses; ++i) ASSERT_TRUE(ranks[i]->drain->wait(targets[i]->slot, no_progress).ok());
  const std::string got = content("a");
  EXPECT_EQ(got, model.substr(0, got.size()));
  EXPECT_GE(got.size(), 3000U);
}

}  // namespace
}  // namespace spillway::drain
