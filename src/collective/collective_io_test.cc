// Collective reads and writes over ranks as threads, byte for byte against a naive oracle; and what every rank returns when something
// fails on one of them.
#include "collective/collective_io.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "collective/test_access.h"
#include "collective/test_ranks.h"

namespace spillway::collective {
namespace {

using extent::Random;
using Rank = MemoryRanks::Rank;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kPrograms = 2;
#else
constexpr int kPrograms = 6;
#endif

// Ranks that write the same bytes in one call race for them, as their program asked: the thread sanitizer is right to say so.
#if defined(__SANITIZE_THREAD__)
constexpr bool kRanksOverwriteEachOther = false;
#else
constexpr bool kRanksOverwriteEachOther = true;
#endif

Policy policy_for(Algorithm algorithm) {
  Policy policy;
  policy.choose = false;
  policy.algorithm = algorithm;
  return policy;
}

std::byte value_at(int step, int rank, std::int64_t i) {
  return static_cast<std::byte>((step * 37 + rank * 101 + i * 7 + 1) & 0xff);
}

// One collective call of all ranks: known to all from the seed.
struct Step {
  bool write = true;
  bool new_views = false;
  Policy policy;
  std::vector<SampleView> views;
  std::vector<view::ViewRange> ranges;
};

class StepMaker {
 public:
  StepMaker(Random& random, int ranks) : random_(random), ranks_(ranks) {}
  Step next() {
    Step step;
    step.write = views_.empty() || !random_.one_in(3);
    step.new_views = views_.empty() || random_.one_in(2);
    if (step.new_views) {
      disjoint_ = random_.one_in(2) || (step.write && !kRanksOverwriteEachOther);
      views_ = disjoint_ ? dealt_views(random_, ranks_) : std::vector<SampleView>();
      while (static_cast<int>(views_.size()) < ranks_) views_.push_back(random_view(random_));
    }
    if (!disjoint_ && !kRanksOverwriteEachOther) step.write = false;
    step.views = views_;
    const std::int64_t longest = ranks_ > 16 ? 100 : 700;
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::int64_t length = random_.one_in(5) ? 0 : random_.between(1, longest);
      step.ranges.push_back({random_.between(0, 300), length});
    }
    step.policy = random_policy();
    return step;
  }

 private:
  Policy random_policy() {
    // Ranks that write the same bytes by themselves leave two nodes with the same bytes pending: not what MPI defines.
    Policy policy = policy_for(random_.one_in(3) && disjoint_ ? Algorithm::individual : Algorithm::two_phase);
    policy.choose = random_.one_in(4) && disjoint_;
    if (random_.one_in(2)) policy.aggregators_max = static_cast<std::int32_t>(random_.between(1, ranks_));
    if (random_.one_in(3)) policy.aggregators_per_node_max = static_cast<std::int32_t>(random_.between(1, 3));
    if (random_.one_in(2)) policy.alignment = random_.between(1, 300);
    return policy;
  }
  Random& random_;
  int ranks_;
  bool disjoint_ = false;
  std::vector<SampleView> views_;
};

class EveryShape : public testing::TestWithParam<RankShape> {};

void check_write(const Step& step, int number, const std::vector<std::byte>& before,
                 const std::vector<std::byte>& after) {
  std::map<std::int64_t, std::set<std::byte>> written;
  for (std::size_t rank = 0; rank < step.views.size(); ++rank) {
    const std::vector<std::int64_t> offsets = step.views[rank].offsets(step.ranges[rank]);
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      written[offsets[i]].insert(value_at(number, static_cast<int>(rank), static_cast<std::int64_t>(i)));
    }
  }
  std::size_t size = before.size();
  if (!written.empty()) size = std::max(size, static_cast<std::size_t>(written.rbegin()->first) + 1);
  ASSERT_EQ(after.size(), size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto found = written.find(static_cast<std::int64_t>(i));
    if (found != written.end()) {
      ASSERT_TRUE(found->second.count(after[i])) << "byte " << i << ", written";
    } else {
      ASSERT_EQ(after[i], i < before.size() ? before[i] : std::byte{0}) << "byte " << i << ", not written";
    }
  }
}

void run_step(Rank& rank, const Step& step, int number, const std::vector<std::byte>& file, Random& random) {
  const auto me = static_cast<std::size_t>(rank.comm.rank());
  const view::ViewRange& range = step.ranges[me];
  SampleMemory memory = random_memory(random, range.length);
  const std::vector<std::byte> untouched = memory.bytes;
  const Call call{&step.views[me].view, range, &memory.layout, {}};
  if (step.write) {
    for (std::int64_t i = 0; i < range.length; ++i) memory.at(i) = value_at(number, rank.comm.rank(), i);
    // Sometimes none of the ranks, sometimes some, sometimes all know that they cannot fail.
    rank.local.promises = number % 2 == 0 || (number + rank.comm.rank()) % 3 == 0;
    const Status status = rank.io.write(call, step.policy);
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_FALSE(rank.local.held);
    return;
  }
  const Result<std::int64_t> got = rank.io.read(call, step.policy);
  ASSERT_TRUE(got.ok()) << got.status().to_string();
  const std::vector<std::int64_t> offsets = step.views[me].offsets(range);
  std::vector<std::byte> expected = untouched;
  std::int64_t length = 0;
  for (; length < range.length; ++length) {
    const auto offset = static_cast<std::size_t>(offsets[static_cast<std::size_t>(length)]);
    if (offset >= file.size()) break;
    expected[static_cast<std::size_t>(memory.places[static_cast<std::size_t>(length)])] = file[offset];
  }
  ASSERT_EQ(got.value(), length);
  ASSERT_EQ(memory.bytes, expected);  // and nothing beside what was asked for
}

TEST_P(EveryShape, RandomCallsAgainstAByteArray) {
  extent::for_random_rounds(kPrograms, [&](Random& random) {
    MemoryRanks ranks(GetParam());
    StepMaker maker(random, ranks.ranks());
    std::vector<std::byte> model;
    for (int part = 0; part < 3; ++part) {
      // Views stay over several calls, some with new ones in between.
      std::vector<Step> steps;
      for (int i = 0; i < 4; ++i) steps.push_back(maker.next());
      steps[0].new_views = true;
      const std::uint64_t seed = static_cast<std::uint64_t>(random.between(0, 1 << 30));
      std::vector<std::vector<std::byte>> before(steps.size() + 1);
      before[0] = model;
      ranks.run([&](Rank& rank) {
        Random local(seed + static_cast<std::uint64_t>(rank.comm.rank()));
        for (std::size_t i = 0; i < steps.size(); ++i) {
          if (steps[i].new_views) rank.io.view_changed();
          ASSERT_NO_FATAL_FAILURE(run_step(rank, steps[i], static_cast<int>(i), before[i], local)) << "step " << i;
          ASSERT_TRUE(rank.comm.barrier().ok());
          if (rank.comm.rank() == 0) {
            before[i + 1] = ranks.content();
            if (steps[i].write) {
              check_write(steps[i], static_cast<int>(i), before[i], before[i + 1]);
            } else {
              EXPECT_EQ(before[i + 1], before[i]);
            }
          }
          ASSERT_TRUE(rank.comm.barrier().ok());
        }
      });
      if (testing::Test::HasFailure()) return;
      model = before.back();
    }
  });
}

std::string name_of_shape(const testing::TestParamInfo<RankShape>& info) {
  const RankShape& shape = info.param;
  return std::to_string(shape.nodes) + "x" + std::to_string(shape.ranks_per_node) +
         (shape.staging ? "_staged" : "_direct") + "_rounds_of_" + std::to_string(shape.round_bytes);
}

INSTANTIATE_TEST_SUITE_P(All, EveryShape,
                         testing::Values(RankShape{1, 1, true, 100, 30}, RankShape{1, 2, false, 64, 64},
                                         RankShape{1, 5, true, 200, 7}, RankShape{1, 16, false, 1000, 64},
                                         RankShape{2, 1, true, 150, 50}, RankShape{2, 3, false, 90, 13},
                                         RankShape{3, 2, true, 500, 100}, RankShape{4, 4, true, 1 << 20, 1 << 20},
                                         RankShape{7, 1, false, 300, 40}, RankShape{8, 8, false, 1 << 20, 200},
                                         RankShape{8, 8, true, 1 << 20, 1 << 20}, RankShape{1, 64, true, 1 << 20, 100}),
                         name_of_shape);

// More pieces than a message's list of places holds: they go through a buffer instead.
TEST(CollectiveIo, ManySmallPiecesBetweenNodes) {
  MemoryRanks ranks({2, 1, false, 1 << 20, 777});
  constexpr std::int64_t kPieces = 3000;
  ranks.run([&](Rank& rank) {
    const int me = rank.comm.rank();
    const SampleView view = view_of({{me, 1}}, extent::Pattern::block(me, 1), 0, 2);
    std::vector<std::byte> bytes(kPieces);
    for (std::size_t i = 0; i < kPieces; ++i) bytes[i] = value_at(0, me, static_cast<std::int64_t>(i));
    view::MemoryLayout memory = view::MemoryLayout::contiguous_bytes(bytes.data(), kPieces);
    Policy policy = policy_for(Algorithm::two_phase);
    policy.aggregators_max = 1;  // all of it on rank 0
    EXPECT_TRUE(rank.io.write({&view.view, {0, kPieces}, &memory, {}}, policy).ok());
    EXPECT_EQ(rank.io.last_end(), 2 * kPieces);
    std::vector<std::byte> back(kPieces);
    view::MemoryLayout into = view::MemoryLayout::contiguous_bytes(back.data(), kPieces);
    EXPECT_EQ(rank.io.read({&view.view, {0, kPieces}, &into, {}}, policy).value(), kPieces);
    EXPECT_EQ(back, bytes);
  });
}

// A file view whose pieces overlap may only be read, and not by way of file domains.
TEST(CollectiveIo, OverlappingViewsAreReadIndividually) {
  MemoryRanks ranks({1, 3, false});
  ranks.file().write(0, std::vector<std::byte>(100, std::byte{'a'}));
  ranks.run([&](Rank& rank) {
    const extent::Pattern twice = extent::Pattern::list(std::vector<std::int64_t>{0, 2}, extent::Pattern::block(0, 4));
    const Result<view::FileView> view = view::FileView::make(0, 1, twice, 6, false);
    ASSERT_TRUE(view.ok());
    ASSERT_FALSE(view.value().sorted_disjoint());
    rank.local.read_fault.call = rank.comm.rank() == 1 ? 1 : 0;  // shows who read it
    std::vector<std::byte> bytes(8);
    view::MemoryLayout memory = view::MemoryLayout::contiguous_bytes(bytes.data(), 8);
    const Call call{&view.value(), {0, 8}, &memory, {}};
    EXPECT_EQ(rank.io.read(call, policy_for(Algorithm::two_phase)).status().code(), Code::io);
  });
}

}  // namespace
}  // namespace spillway::collective
