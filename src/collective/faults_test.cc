// No rank leaves a collective call alone, and all return the same code, whatever fails where.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "collective/test_access.h"
#include "collective/test_ranks.h"

namespace spillway::collective {
namespace {

using Rank = MemoryRanks::Rank;

constexpr std::int64_t kBytes = 256;  // of each rank, in blocks of 16 dealt to all

Policy exchanging() {
  Policy policy;
  policy.choose = false;
  policy.algorithm = Algorithm::two_phase;
  policy.alignment = 16;
  return policy;
}
Policy alone() {
  Policy policy = exchanging();
  policy.algorithm = Algorithm::individual;
  return policy;
}

class Faults : public testing::TestWithParam<RankShape> {
 protected:
  Faults() : ranks_(GetParam()), codes_(static_cast<std::size_t>(ranks_.ranks())) {}

  struct Plan {
    Policy policy = exchanging();
    bool write = true;
    std::function<void(Rank&)> faults = [](Rank&) {};
    std::function<Status(int rank)> precondition = [](int) { return Status(); };
    MemoryRanks::Wrap wrap = nullptr;
  };
  // The call that fails, then the same one again without faults: it must succeed, and its bytes be right.
  void run(const Plan& plan, Code expected) {
    // Something to read, and for a staging node something pending.
    ranks_.run([&](Rank& rank) { EXPECT_TRUE(call(rank, true, exchanging(), {}, 'a').ok()); });
    ranks_.run(
        [&](Rank& rank) {
          plan.faults(rank);
          const int me = rank.comm.rank();
          codes_[static_cast<std::size_t>(me)] = call(rank, plan.write, plan.policy, plan.precondition(me), 'b').code();
          const Status again = call(rank, plan.write, plan.policy, {}, plan.write ? 'c' : 'a');
          EXPECT_TRUE(again.ok()) << again.to_string();
        },
        plan.wrap);
    for (const Code code : codes_) EXPECT_EQ(code, expected) << name_of(code);
    const std::vector<std::byte> content = ranks_.content();
    const auto right = static_cast<std::byte>(plan.write ? 'c' : 'a');
    EXPECT_EQ(content, std::vector<std::byte>(static_cast<std::size_t>(kBytes * ranks_.ranks()), right));
  }

  // A write with `fill`, or a read that must find it where it succeeds.
  Status call(Rank& rank, bool write, const Policy& policy, const Status& precondition, char fill) {
    const int me = rank.comm.rank();
    const SampleView view = view_of({{me * 16, 16}}, extent::Pattern::block(me * 16, 16), 0, ranks_.ranks() * 16);
    std::vector<std::byte> bytes(kBytes, static_cast<std::byte>(write ? fill : '?'));
    const view::MemoryLayout memory = view::MemoryLayout::contiguous_bytes(bytes.data(), kBytes);
    Call call{&view.view, {0, kBytes}, &memory, precondition};
    if (!precondition.ok()) call.range = {};
    if (write) return rank.io.write(call, policy);
    const Result<std::int64_t> got = rank.io.read(call, policy);
    if (!got.ok()) return got.status();
    EXPECT_EQ(got.value(), kBytes);
    EXPECT_EQ(bytes, std::vector<std::byte>(kBytes, static_cast<std::byte>(fill)));
    return {};
  }
  [[nodiscard]] int victim() const { return ranks_.ranks() - 1; }

  MemoryRanks ranks_;
  std::vector<Code> codes_;
};

class DirectFaults : public Faults {};       // what is staged cannot fail to be finished
class NodesFaults : public Faults {};        // the ranks of one node send no messages
class StagedNodesFaults : public Faults {};  // bytes can be pending on another node

TEST_P(Faults, APreconditionOfOneRank) {
  for (const bool write : {true, false}) {
    for (const Policy& policy : {exchanging(), alone()}) {
      run({.policy = policy,
           .write = write,
           .precondition =
               [&](int rank) { return rank == victim() ? Status(Code::bad_argument, "refused") : Status(); }},
          Code::bad_argument);
      if (HasFailure()) return;
    }
  }
}

TEST_P(Faults, TheGravestOfSeveralPreconditions) {
  run({.precondition =
           [&](int rank) {
             if (rank == 0) return Status(Code::no_space, "a latched failure");
             return rank == victim() ? Status(Code::bad_type, "refused") : Status();
           }},
      Code::no_space);
}

TEST_P(Faults, TheSizeCannotBeAskedOnOneRank) {
  run({.write = false, .faults = [&](Rank& rank) { rank.local.end_fault.call = rank.comm.rank() == 0 ? 1 : 0; }},
      Code::io);
}

TEST_P(Faults, AcceptingFailsOnOneAggregatorInEachRound) {
  for (const int round : {1, 2, 5}) {
    run({.faults =
             [&](Rank& rank) {
               rank.local.promises = rank.comm.rank() != victim();
               if (rank.comm.rank() == victim()) rank.write_landing.accept_fault = {round, Code::no_space};
             }},
        Code::no_space);
    if (HasFailure()) return;
  }
}

TEST_P(DirectFaults, FinishingFailsOnOneAggregatorInEachRound) {
  for (const int round : {1, 3, 8}) {  // 8: the last
    run({.faults =
             [&](Rank& rank) {
               if (rank.comm.rank() == victim()) rank.write_landing.finish_fault = {round, Code::quota};
             }},
        Code::quota);
    if (HasFailure()) return;
  }
}

TEST_P(DirectFaults, AcceptingAndFinishingFailOnDifferentAggregators) {
  run({.faults =
           [&](Rank& rank) {
             if (rank.comm.rank() == victim()) rank.write_landing.finish_fault = {2, Code::io};
             if (rank.comm.rank() == 0) rank.write_landing.accept_fault = {3, Code::no_space};
           }},
      Code::io);
}

TEST_P(Faults, FetchingFailsOnOneAggregatorInEachRound) {
  for (const int round : {1, 2, 8}) {
    run({.write = false,
         .faults =
             [&](Rank& rank) {
               if (rank.comm.rank() == victim()) rank.read_landing.fault = {round, Code::access_denied};
             }},
        Code::access_denied);
    if (HasFailure()) return;
  }
}

TEST_P(Faults, ARanksOwnWriteOrReadFails) {
  for (const bool write : {true, false}) {
    run({.policy = alone(),
         .write = write,
         .faults =
             [&](Rank& rank) {
               if (rank.comm.rank() == victim()) rank.local.write_fault = rank.local.read_fault = {1, Code::no_space};
             }},
        Code::no_space);
    if (HasFailure()) return;
  }
}

// Fails the n-th exchange of messages of one rank, after it has been made.
class FailingExchange final : public comm::Communicator {
 public:
  FailingExchange(comm::Communicator& inner, const Fault& fault) : inner_(inner), fault_(fault) {}
  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int size() const override { return inner_.size(); }
  [[nodiscard]] int node_count() const override { return inner_.node_count(); }
  [[nodiscard]] int node_of(int rank) const override { return inner_.node_of(rank); }
  [[nodiscard]] std::span<const int> node_ranks() const override { return inner_.node_ranks(); }
  [[nodiscard]] comm::Team& node_team() override { return inner_.node_team(); }
  Status allgatherv(std::span<const std::byte> mine, comm::Gathered& out) override {
    return inner_.allgatherv(mine, out);
  }
  Status barrier() override { return inner_.barrier(); }
  Status exchange(std::span<const comm::SendMessage> sends, std::span<const comm::ReceiveMessage> receives) override {
    const Status status = inner_.exchange(sends, receives);
    const Status failure = fault_.next("a message");
    return status.ok() ? failure : status;
  }
  void progress() override { inner_.progress(); }

 private:
  comm::Communicator& inner_;
  Fault fault_;
};

TEST_P(NodesFaults, AMessageFailsOnOneRank) {
  for (const bool write : {true, false}) {
    for (const int round : {1, 3}) {
      run({.write = write,
           .wrap =
               [&](comm::Communicator& comm) {
                 return std::make_unique<FailingExchange>(comm, Fault{comm.rank() == victim() ? round : 0, Code::io});
               }},
          Code::io);
      if (HasFailure()) return;
    }
  }
}

// What another node holds pending where this call writes must reach the file first, and cannot.
TEST_P(StagedNodesFaults, FlushingWhatIsInTheWayFails) {
  ranks_.run([&](Rank& rank) { EXPECT_TRUE(call(rank, true, exchanging(), {}, 'a').ok()); });
  ranks_.run([&](Rank& rank) {
    rank.local.flush_fault = {1, Code::no_space};
    Policy policy = exchanging();
    policy.aggregators_max = 1;  // everything to the first node
    codes_[static_cast<std::size_t>(rank.comm.rank())] = call(rank, true, policy, {}, 'b').code();
    EXPECT_TRUE(call(rank, true, policy, {}, 'c').ok());
  });
  for (const Code code : codes_) EXPECT_EQ(code, Code::no_space) << name_of(code);
  EXPECT_EQ(ranks_.content(),
            std::vector<std::byte>(static_cast<std::size_t>(kBytes * ranks_.ranks()), std::byte{'c'}));
}

std::string name_of_shape(const testing::TestParamInfo<RankShape>& shape) {
  return std::to_string(shape.param.nodes) + "x" + std::to_string(shape.param.ranks_per_node) +
         (shape.param.staging ? "_staged" : "_direct");
}

// Each aggregator has kBytes of the file: 8 rounds.
INSTANTIATE_TEST_SUITE_P(All, Faults,
                         testing::Values(RankShape{1, 1, true, 32, 32}, RankShape{1, 1, false, 32, 32},
                                         RankShape{1, 4, true, 32, 16}, RankShape{1, 4, false, 32, 32},
                                         RankShape{2, 2, true, 32, 32}, RankShape{2, 2, false, 32, 7},
                                         RankShape{3, 1, true, 32, 32}, RankShape{8, 2, false, 32, 32}),
                         name_of_shape);
INSTANTIATE_TEST_SUITE_P(All, DirectFaults,
                         testing::Values(RankShape{1, 2, false, 32, 32}, RankShape{1, 4, false, 32, 32},
                                         RankShape{2, 2, false, 32, 7}, RankShape{3, 1, false, 32, 32}),
                         name_of_shape);
INSTANTIATE_TEST_SUITE_P(All, NodesFaults,
                         testing::Values(RankShape{2, 2, true, 32, 32}, RankShape{2, 2, false, 32, 7},
                                         RankShape{3, 1, true, 32, 32}),
                         name_of_shape);
INSTANTIATE_TEST_SUITE_P(All, StagedNodesFaults,
                         testing::Values(RankShape{2, 2, true, 32, 32}, RankShape{3, 1, true, 32, 32}), name_of_shape);

}  // namespace
}  // namespace spillway::collective
