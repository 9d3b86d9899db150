#include "collective/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "collective/aggregators.h"
#include "collective/test_access.h"
#include "comm/thread_comm.h"

namespace spillway::collective {
namespace {

using extent::Extent;
using extent::Random;

Policy at_most(std::int32_t all, std::int32_t per_node) {
  Policy policy;
  policy.aggregators_max = all;
  policy.aggregators_per_node_max = per_node;
  return policy;
}

// --- aggregators ---

TEST(ChooseAggregators, EveryRankUnlessLimited) {
  const std::vector<int> node_of{0, 1, 0, 1, 2};
  EXPECT_EQ(choose_aggregators(node_of, {}), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(choose_aggregators(node_of, at_most(99, 99)), (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(ChooseAggregators, FewAreSpreadOverNodesFirst) {
  const std::vector<int> node_of{0, 0, 0, 1, 1, 1, 2, 2, 2};
  EXPECT_EQ(choose_aggregators(node_of, at_most(1, 0)), (std::vector<int>{0}));
  EXPECT_EQ(choose_aggregators(node_of, at_most(3, 0)), (std::vector<int>{0, 3, 6}));
  EXPECT_EQ(choose_aggregators(node_of, at_most(4, 0)), (std::vector<int>{0, 1, 3, 6}));
  EXPECT_EQ(choose_aggregators(node_of, at_most(0, 2)), (std::vector<int>{0, 1, 3, 4, 6, 7}));
  EXPECT_EQ(choose_aggregators(node_of, at_most(2, 1)), (std::vector<int>{0, 3}));
}

TEST(ChooseAggregators, LimitsHoldWhateverTheNodes) {
  extent::for_random_rounds(300, [](Random& random) {
    std::vector<int> node_of(static_cast<std::size_t>(random.between(1, 40)));
    const std::int64_t nodes = random.between(1, static_cast<std::int64_t>(node_of.size()));
    for (int& node : node_of) node = static_cast<int>(random.between(0, nodes - 1));
    const Policy policy =
        at_most(static_cast<std::int32_t>(random.between(0, 50)), static_cast<std::int32_t>(random.between(0, 5)));
    const std::vector<int> chosen = choose_aggregators(node_of, policy);
    ASSERT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
    ASSERT_EQ(std::set<int>(chosen.begin(), chosen.end()).size(), chosen.size());
    std::int64_t possible = 0;
    std::int64_t least = INT64_MAX;
    std::int64_t most = 0;
    for (int node = 0; node < nodes; ++node) {
      const std::int64_t ranks = std::count(node_of.begin(), node_of.end(), node);
      const std::int64_t limit = policy.aggregators_per_node_max == 0 ? ranks : policy.aggregators_per_node_max;
      const std::int64_t here = std::count_if(
          chosen.begin(), chosen.end(), [&](int rank) { return node_of[static_cast<std::size_t>(rank)] == node; });
      ASSERT_LE(here, limit);
      possible += std::min(ranks, limit);
      most = std::max(most, here);
      if (here < std::min(ranks, limit)) least = std::min(least, here);
    }
    const std::int64_t wanted = policy.aggregators_max == 0 ? possible : policy.aggregators_max;
    ASSERT_EQ(static_cast<std::int64_t>(chosen.size()), std::min(wanted, possible));
    ASSERT_GE(least, most - 1) << "a node that could have had one more has two fewer than another";
  });
}

// --- domains ---

TEST(MakeDomains, TileTheRangeAtTheAlignment) {
  EXPECT_EQ(make_domains({100, 1000}, 4, 256), (std::vector<Extent>{{100, 412}, {512, 512}, {1024, 76}, {1536, 0}}));
  EXPECT_EQ(make_domains({0, 10}, 1, 0), (std::vector<Extent>{{0, 10}}));
}

TEST(MakeDomains, CoverTheRangeOnceWhateverItIs) {
  extent::for_random_rounds(1000, [](Random& random) {
    const bool large = random.one_in(2);
    const Extent range{random.between(0, large ? std::int64_t{1} << 45 : 5000),
                       random.between(1, large ? std::int64_t{1} << 45 : 20000)};
    const auto count = static_cast<std::size_t>(random.between(1, 70));
    const std::int64_t alignment = random.one_in(3) ? 0 : random.between(1, 3000);
    const std::vector<Extent> domains = make_domains(range, count, alignment);
    ASSERT_EQ(domains.size(), count);
    std::int64_t at = range.offset;
    for (const Extent& domain : domains) {
      if (domain.empty()) continue;
      ASSERT_EQ(domain.offset, at);
      if (at != range.offset) {
        ASSERT_EQ(at % (alignment == 0 ? 4096 : alignment), 0);
      }
      at = domain.end();
    }
    ASSERT_EQ(at, range.end());
    const auto used = std::find_if(domains.begin(), domains.end(), [](const Extent& domain) { return domain.empty(); });
    ASSERT_TRUE(std::all_of(used, domains.end(), [](const Extent& domain) { return domain.empty(); }));
  });
}

// --- plan ---

Header header(const Extent& hull) {
  Header result;
  result.hull = hull;
  return result;
}

TEST(Interleaved, HullsThatOverlapAnywhere) {
  EXPECT_FALSE(interleaved(std::vector<Header>{header({0, 10})}));
  EXPECT_FALSE(interleaved(std::vector<Header>{header({10, 10}), header({0, 10}), header({20, 1})}));
  EXPECT_TRUE(interleaved(std::vector<Header>{header({10, 10}), header({0, 11})}));
  EXPECT_TRUE(interleaved(std::vector<Header>{header({0, 100}), header({200, 10}), header({50, 1})}));
  // Ranks with nothing to do overlap nobody, wherever their view is.
  EXPECT_FALSE(interleaved(std::vector<Header>{header({0, 100}), header({50, 0}), header({100, 5})}));
  extent::for_random_rounds(500, [](Random& random) {
    std::vector<Header> headers;
    for (std::int64_t n = random.between(0, 6); n > 0; --n) {
      headers.push_back(header({random.between(0, 60), random.one_in(4) ? 0 : random.between(1, 20)}));
    }
    bool any = false;
    for (std::size_t a = 0; a < headers.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) any = any || headers[a].hull.overlaps(headers[b].hull);
    }
    ASSERT_EQ(interleaved(headers), any);
  });
}

TEST(MakePlan, ExchangesOnlyWhereItHelpsAndCan) {
  const std::vector<int> node_of{0, 0};
  std::vector<Header> apart{header({0, 10}), header({10, 10})};
  std::vector<Header> mixed{header({0, 15}), header({10, 10})};
  EXPECT_EQ(make_plan(apart, node_of).algorithm, Algorithm::individual);
  EXPECT_EQ(make_plan(mixed, node_of).algorithm, Algorithm::two_phase);
  EXPECT_EQ(make_plan(mixed, node_of).range, (Extent{0, 20}));
  EXPECT_EQ(make_plan(mixed, node_of).owners, (std::vector<int>{0, 1}));
  EXPECT_EQ(make_plan(mixed, node_of).owner_index(1), 1);
  EXPECT_EQ(make_plan(mixed, node_of).owner_index(2), -1);
  mixed[1].sorted_disjoint = false;
  EXPECT_EQ(make_plan(mixed, node_of).algorithm, Algorithm::individual);
  mixed[1].hull = {};  // the view of a rank without data does not matter
  mixed[0].policy.choose = false;
  EXPECT_EQ(make_plan(mixed, node_of).algorithm, Algorithm::two_phase);
}

TEST(MakePlan, RankZerosHintsCount) {
  const std::vector<int> node_of{0, 0};
  std::vector<Header> headers{header({0, 10}), header({10, 10})};
  headers[1].policy.choose = false;
  EXPECT_EQ(make_plan(headers, node_of).algorithm, Algorithm::individual);
  headers[0].policy.choose = false;
  headers[0].policy.aggregators_max = 1;
  headers[1].policy.algorithm = Algorithm::individual;
  const Plan plan = make_plan(headers, node_of);
  EXPECT_EQ(plan.algorithm, Algorithm::two_phase);
  EXPECT_EQ(plan.owners, (std::vector<int>{0}));
  EXPECT_EQ(plan.domains, (std::vector<Extent>{{0, 20}}));
}

TEST(MakePlan, NothingToDoAndLandingsThatMayFail) {
  const std::vector<int> node_of{0, 0};
  std::vector<Header> headers{header({}), header({})};
  headers[1].finish_may_fail = true;
  const Plan plan = make_plan(headers, node_of);
  EXPECT_TRUE(plan.range.empty());
  EXPECT_TRUE(plan.finish_may_fail);
  EXPECT_EQ(plan.algorithm, Algorithm::individual);
}

TEST(CommonFailure, TheGravestOfTheLowestRank) {
  std::vector<Header> headers(4);
  EXPECT_TRUE(common_failure(headers, {}).ok());
  headers[3].code = Code::bad_argument;
  headers[1].code = headers[2].code = Code::no_space;
  headers[1].error_offset = 77;
  const Status mine = Status(Code::no_space, "mine");
  EXPECT_EQ(common_failure(headers, mine).what(), "mine");  // says more than a message from elsewhere
  const Status other = common_failure(headers, Status(Code::bad_argument, "less grave"));
  EXPECT_EQ(other.code(), Code::no_space);
  EXPECT_EQ(other.offset(), 77);
  EXPECT_NE(other.what().find("rank 1"), std::string::npos) << other.what();
}

// --- what is pending on other nodes ---

TEST(PendingInTheWay, OnlyWhereAnotherNodeHandlesTheBytes) {
  const std::vector<int> node_of{0, 1, 0};
  std::vector<Header> headers{header({0, 100}), header({100, 100}), header({})};
  headers[0].pending = {150, 10};  // where rank 1, of the other node, writes
  headers[1].pending = {100, 50};  // where it writes itself
  headers[2].pending = {0, 1000};
  Plan plan;
  plan.algorithm = Algorithm::individual;
  plan.range = {0, 200};
  EXPECT_EQ(pending_in_the_way(headers, node_of, plan), (std::vector<Extent>{{150, 10}, {}, {100, 100}}));
  plan.algorithm = Algorithm::two_phase;
  plan.owners = {0, 1};
  plan.domains = {{0, 120}, {120, 80}};
  EXPECT_EQ(pending_in_the_way(headers, node_of, plan), (std::vector<Extent>{{150, 10}, {100, 20}, {120, 80}}));
}

TEST(PendingInTheWay, TheHullOfAllParts) {
  const std::vector<int> node_of{0, 1};
  std::vector<Header> headers{header({}), header({})};
  headers[0].pending = {0, 1000};
  Plan plan;
  plan.algorithm = Algorithm::two_phase;
  plan.owners = {1, 0, 1};
  plan.domains = {{100, 10}, {300, 100}, {500, 10}};
  EXPECT_EQ(pending_in_the_way(headers, node_of, plan), (std::vector<Extent>{{100, 410}, {}}));
}

// --- who touches what ---

TEST(Touched, AgainstTheBytesOfAllViews) {
  extent::for_random_rounds(100, [](Random& random) {
    const int ranks = static_cast<int>(random.between(1, 5));
    comm::ThreadWorld world(std::vector<int>(static_cast<std::size_t>(ranks), 0));
    std::vector<SampleView> views;
    std::vector<Header> headers;
    for (int rank = 0; rank < ranks; ++rank) {
      views.push_back(random_view(random));
      Header one;
      one.range = {random.between(0, 200), random.one_in(4) ? 0 : random.between(1, 300)};
      one.hull = views.back().view.bounds(one.range.position, one.range.length);
      headers.push_back(one);
    }
    const Extent domain{random.between(0, 500), random.between(1, 500)};
    std::vector<Extent> bytes;
    for (std::size_t rank = 0; rank < views.size(); ++rank) {
      for (const std::int64_t offset : views[rank].offsets(headers[rank].range)) {
        if (domain.contains({offset, 1})) bytes.push_back({offset, 1});
      }
    }
    const extent::ExtentList expected = extent::ExtentList::from_unsorted(std::move(bytes));
    comm::run_ranks(world, [&](comm::Communicator& comm) {
      ViewTable table;
      EXPECT_FALSE(table.valid());
      ASSERT_TRUE(table.exchange(comm, views[static_cast<std::size_t>(comm.rank())].view).ok());
      EXPECT_TRUE(table.valid());
      const extent::ExtentList got = touched(headers, table, domain);
      // All that is touched, and where gaps are filled to keep the list short, nothing outside the domain.
      EXPECT_EQ(got, expected);
      table.invalidate();
      EXPECT_FALSE(table.valid());
    });
  });
}

}  // namespace
}  // namespace spillway::collective
