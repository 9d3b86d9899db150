#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <random>
#include <string>

#include "comm/thread_comm.h"

namespace spillway::comm {
namespace {

std::vector<std::byte> text(const std::string& value) {
  const auto bytes = std::as_bytes(std::span<const char>(value.data(), value.size()));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> contribution(int rank, int round, std::size_t longest) {
  std::mt19937 random(static_cast<unsigned>(rank * 1000 + round));
  std::vector<std::byte> bytes(random() % (longest + 1));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

struct Shape {
  int nodes;
  int ranks_per_node;
};

class EveryShape : public testing::TestWithParam<Shape> {
 protected:
  // Ranks are dealt to the nodes in turn, so that a node's ranks are not neighbours.
  [[nodiscard]] static std::vector<int> node_map() {
    std::vector<int> map(static_cast<std::size_t>(GetParam().nodes * GetParam().ranks_per_node));
    for (std::size_t i = 0; i < map.size(); ++i) map[i] = static_cast<int>(i) % GetParam().nodes;
    return map;
  }
};

TEST_P(EveryShape, AllgathervGivesEveryoneEverything) {
  ThreadWorld world(node_map());
  run_ranks(world, [&](Communicator& comm) {
    for (int round = 0; round < 6; ++round) {
      // From nothing over less than a mailbox to several mailboxes.
      const std::size_t longest = round % 2 == 0 ? 100 : 3 * Team::kMailboxBytes;
      Gathered all;
      ASSERT_TRUE(comm.allgatherv(contribution(comm.rank(), round, longest), all).ok());
      ASSERT_EQ(all.size(), static_cast<std::size_t>(comm.size()));
      for (int rank = 0; rank < comm.size(); ++rank) {
        const auto expected = contribution(rank, round, longest);
        const auto got = all[static_cast<std::size_t>(rank)];
        ASSERT_TRUE(std::equal(got.begin(), got.end(), expected.begin(), expected.end()))
            << rank << " in round " << round;
      }
      ASSERT_TRUE(comm.barrier().ok());
    }
  });
}

TEST_P(EveryShape, AgreementTakesTheGravestFailureOfTheLowestRank) {
  ThreadWorld world(node_map());
  run_ranks(world, [&](Communicator& comm) {
    EXPECT_TRUE(agree(comm, {}).ok());
    Status mine;
    if (comm.rank() == 0) mine = Status(Code::bad_argument, "zero");
    if (comm.rank() == comm.size() / 2) mine = Status(Code::no_space, "half").at_offset(77);
    if (comm.rank() == comm.size() - 1 && comm.size() > 2) mine = Status(Code::no_space, "last");
    const Status agreed = agree(comm, mine);
    EXPECT_EQ(agreed.code(), Code::no_space);
    if (comm.rank() != comm.size() / 2 && mine.code() != Code::no_space) {
      EXPECT_NE(agreed.what().find("half"), std::string::npos) << agreed.what();
      EXPECT_EQ(agreed.offset(), 77);
    }
  });
}

TEST_P(EveryShape, MessagesArriveInPieces) {
  ThreadWorld world(node_map());
  run_ranks(world, [&](Communicator& comm) {
    std::vector<std::vector<std::byte>> outgoing;
    std::vector<SendMessage> sends;
    std::vector<ReceiveMessage> receives;
    std::vector<std::vector<std::byte>> incoming(static_cast<std::size_t>(comm.size()), std::vector<std::byte>(12));
    std::vector<std::vector<ReceivePiece>> pieces(incoming.size());
    for (int peer = 0; peer < comm.size(); ++peer) {
      if (peer == comm.rank()) continue;
      outgoing.push_back(text("from " + std::to_string(100 + comm.rank()) + "-" + std::to_string(100 + peer)));
    }
    std::size_t next = 0;
    for (int peer = 0; peer < comm.size(); ++peer) {
      if (peer == comm.rank()) continue;
      sends.push_back({peer, outgoing[next++]});
      auto& into = incoming[static_cast<std::size_t>(peer)];
      pieces[static_cast<std::size_t>(peer)] = {{into.data(), 5}, {into.data() + 5, 7}};
      receives.push_back({peer, pieces[static_cast<std::size_t>(peer)]});
    }
    ASSERT_TRUE(comm.exchange(sends, receives).ok());
    for (int peer = 0; peer < comm.size(); ++peer) {
      if (peer == comm.rank()) continue;
      EXPECT_EQ(incoming[static_cast<std::size_t>(peer)],
                text("from " + std::to_string(100 + peer) + "-" + std::to_string(100 + comm.rank())));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, EveryShape,
                         testing::Values(Shape{1, 1}, Shape{1, 2}, Shape{1, 7}, Shape{3, 1}, Shape{2, 4}, Shape{1, 32}),
                         [](const testing::TestParamInfo<Shape>& shape) {
                           return std::to_string(shape.param.nodes) + "x" + std::to_string(shape.param.ranks_per_node);
                         });

TEST(Team, WhatWasWrittenBeforeThePhaseIsSeenAfterIt) {
  constexpr int kMembers = 5;
  std::vector<int> values(kMembers);
  ThreadWorld world(std::vector<int>(kMembers, 0));
  run_ranks(world, [&](Communicator& comm) {
    for (int round = 1; round <= 50; ++round) {
      values[static_cast<std::size_t>(comm.rank())] = round * (comm.rank() + 1);
      ASSERT_TRUE(comm.node_team().barrier().ok());
      ASSERT_EQ(std::accumulate(values.begin(), values.end(), 0), round * 15);
      ASSERT_TRUE(comm.node_team().barrier().ok());
    }
  });
}

TEST(Team, ACommitIsCountedTheInstantTheLastMemberArrives) {
  std::vector<std::byte> memory(Team::block_bytes(2) + 64);
  void* block = memory.data();
  std::size_t space = memory.size();
  std::align(64, Team::block_bytes(2), block, space);
  const auto& word = *static_cast<const std::atomic<std::uint32_t>*>(block);
  ThreadWorld world({0, 0}, {block});
  run_ranks(world, [&](Communicator& comm) {
    Team& team = comm.node_team();
    ASSERT_TRUE(team.barrier().ok());
    EXPECT_EQ(word.load(), 0U);
    for (std::uint32_t i = 1; i <= 20; ++i) {
      EXPECT_EQ(team.next_commit(), i);
      EXPECT_LT(word.load(), i);
      ASSERT_TRUE(team.commit().ok());
      EXPECT_GE(word.load(), i);
      ASSERT_TRUE(team.barrier().ok());
    }
  });
}

TEST(Team, ProgressIsCalledWhileWaiting) {
  const std::size_t bytes = Team::block_bytes(2);
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  // The second member arrives only from inside the first one's progress: as a peer does that is stuck in an MPI call until then.
  Team second(block, 1, 2, {});
  int calls = 0;
  WaitHooks hooks;
  hooks.progress = [&] {
    if (++calls == 3) {
      // Cannot block: the first member has arrived already.
      EXPECT_TRUE(second.barrier().ok());
    }
  };
  Team first(block, 0, 2, hooks);
  EXPECT_TRUE(first.barrier().ok());
  EXPECT_EQ(calls, 3);
  munmap(block, bytes);
}

TEST(Team, ADeadMemberIsReportedToAllOthers) {
  const std::size_t bytes = Team::block_bytes(3);
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  WaitHooks knows;
  knows.members_alive = [] { return false; };
  Code seen[2] = {Code::ok, Code::ok};
  std::thread one([&] {
    Team team(block, 0, 3, knows);
    seen[0] = team.barrier().code();
  });
  std::thread two([&] {
    Team team(block, 1, 3, {});  // learns it from the first
    seen[1] = team.barrier().code();
  });
  one.join();
  two.join();
  EXPECT_EQ(seen[0], Code::peer_lost);
  EXPECT_EQ(seen[1], Code::peer_lost);
  munmap(block, bytes);
}

TEST(Team, WorksBetweenProcesses) {
  constexpr int kMembers = 3;
  const std::size_t bytes = Team::block_bytes(kMembers);
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::vector<pid_t> children;
  for (int member = 0; member < kMembers; ++member) {
    const pid_t child = fork();
    if (child == 0) {
      Team team(block, member, kMembers, {});
      bool good = true;
      for (int round = 0; round < 200; ++round) {
        Gathered all;
        const int mine = member * 1000 + round;
        good = good && team.allgatherv(bytes_of(mine), all).ok() && all.size() == kMembers;
        for (int i = 0; good && i < kMembers; ++i)
          good = value_of<int>(all[static_cast<std::size_t>(i)]) == i * 1000 + round;
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  munmap(block, bytes);
}

}  // namespace
}  // namespace spillway::comm
