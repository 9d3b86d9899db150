#include "collective/aggregators.h"

#include <algorithm>

#include "base/units.h"

namespace spillway::collective {

std::vector<int> choose_aggregators(std::span<const int> node_of, const Policy& policy) {
  const int nodes = node_of.empty() ? 0 : *std::max_element(node_of.begin(), node_of.end()) + 1;
  std::vector<std::vector<int>> ranks_of(static_cast<std::size_t>(nodes));
  for (std::size_t rank = 0; rank < node_of.size(); ++rank) {
    ranks_of[static_cast<std::size_t>(node_of[rank])].push_back(static_cast<int>(rank));
  }
  std::size_t wanted = node_of.size();
  if (policy.aggregators_max > 0) wanted = std::min(wanted, static_cast<std::size_t>(policy.aggregators_max));
  std::size_t per_node = wanted;
  if (policy.aggregators_per_node_max > 0) per_node = static_cast<std::size_t>(policy.aggregators_per_node_max);

  // One from every node in turn, so that a small number is spread over nodes first.
  std::vector<int> chosen;
  for (std::size_t turn = 0; chosen.size() < wanted && turn < per_node; ++turn) {
    bool any = false;
    for (const auto& ranks : ranks_of) {
      if (turn >= ranks.size()) continue;
      any = true;
      if (chosen.size() < wanted) chosen.push_back(ranks[turn]);
    }
    if (!any) break;
  }
  // Domains follow ranks: a decomposition in rank order then finds much of its data on its own node already.
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<extent::Extent> make_domains(const extent::Extent& range, std::size_t count, std::int64_t alignment) {
  const auto parts = static_cast<std::int64_t>(count);
  if (alignment <= 0) alignment = range.length / parts >= 4 * base::kMiB ? base::kMiB : 4 * base::kKiB;
  const std::int64_t begin = base::round_down(range.offset, alignment);
  const std::int64_t length = base::round_up((range.end() - begin + parts - 1) / parts, alignment);
  std::vector<extent::Extent> domains;
  domains.reserve(count);
  for (std::int64_t i = 0; i < parts; ++i) domains.push_back(extent::intersection({begin + i * length, length}, range));
  return domains;
}

}  // namespace spillway::collective
