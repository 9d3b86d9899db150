#include "collective/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "collective/aggregators.h"

namespace spillway::collective {

int Plan::owner_index(int rank) const {
  const auto found = std::find(owners.begin(), owners.end(), rank);
  return found == owners.end() ? -1 : static_cast<int>(found - owners.begin());
}

Status common_failure(std::span<const Header> headers, const Status& mine) {
  const auto worst = std::max_element(headers.begin(), headers.end(),
                                      [](const Header& a, const Header& b) { return a.code < b.code; });
  if (worst->code == Code::ok) return {};
  if (worst->code == mine.code()) return mine;
  return Status(worst->code, fmt::format("rank {} failed: {}", worst - headers.begin(), name_of(worst->code)))
      .at_offset(worst->error_offset);
}

bool interleaved(std::span<const Header> headers) {
  std::vector<extent::Extent> hulls;
  for (const Header& header : headers) {
    if (!header.hull.empty()) hulls.push_back(header.hull);
  }
  std::sort(hulls.begin(), hulls.end(),
            [](const extent::Extent& a, const extent::Extent& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < hulls.size(); ++i) {
    if (hulls[i].offset < hulls[i - 1].end())
      return true;  // sorted by begin: an overlap anywhere shows between neighbours
  }
  return false;
}

Plan make_plan(std::span<const Header> headers, std::span<const int> node_of) {
  const Policy& policy = headers[0].policy;
  Plan plan;
  std::int64_t begin = INT64_MAX;
  std::int64_t end = 0;
  bool exchangeable = true;
  for (const Header& header : headers) {
    plan.finish_may_fail = plan.finish_may_fail || header.finish_may_fail;
    if (header.hull.empty()) continue;
    plan.write_may_fail = plan.write_may_fail || header.write_may_fail;
    begin = std::min(begin, header.hull.offset);
    end = std::max(end, header.hull.end());
    exchangeable = exchangeable && header.sorted_disjoint;
  }
  plan.range = {begin, std::max<std::int64_t>(0, end - begin)};
  plan.algorithm = policy.algorithm;
  if (policy.choose) plan.algorithm = interleaved(headers) ? Algorithm::two_phase : Algorithm::individual;
  if (!exchangeable || plan.range.empty()) plan.algorithm = Algorithm::individual;
  if (plan.algorithm == Algorithm::two_phase) {
    plan.owners = choose_aggregators(node_of, policy);
    plan.domains = make_domains(plan.range, plan.owners.size(), policy.alignment);
  }
  return plan;
}

std::vector<extent::Extent> pending_in_the_way(std::span<const Header> headers, std::span<const int> node_of,
                                               const Plan& plan) {
  std::vector<extent::Extent> in_the_way(headers.size());
  const auto consider = [&](std::size_t rank, int node, const extent::Extent& handled) {
    if (node_of[rank] == node) return;
    const extent::Extent part = extent::intersection(headers[rank].pending, handled);
    if (part.empty()) return;
    extent::Extent& all = in_the_way[rank];
    const std::int64_t begin = all.empty() ? part.offset : std::min(all.offset, part.offset);
    all = {begin, std::max(all.empty() ? 0 : all.end(), part.end()) - begin};
  };
  for (std::size_t rank = 0; rank < headers.size(); ++rank) {
    if (headers[rank].pending.empty()) continue;
    if (plan.algorithm == Algorithm::two_phase) {
      for (std::size_t i = 0; i < plan.owners.size(); ++i) {
        consider(rank, node_of[static_cast<std::size_t>(plan.owners[i])], plan.domains[i]);
      }
    } else {
      for (std::size_t other = 0; other < headers.size(); ++other) consider(rank, node_of[other], headers[other].hull);
    }
  }
  return in_the_way;
}

extent::ExtentList touched(std::span<const Header> headers, const ViewTable& views, const extent::Extent& domain) {
  std::vector<extent::TiledAccess> accesses;
  for (std::size_t rank = 0; rank < headers.size(); ++rank) {
    const Header& header = headers[rank];
    if (!header.hull.overlaps(domain)) continue;
    accesses.push_back(views[static_cast<int>(rank)].access(header.range.position, header.range.length));
  }
  return accesses.empty() ? extent::ExtentList() : extent::coalesced_union(accesses, domain);
}

}  // namespace spillway::collective
