#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/call.h"
#include "extent/extent.h"

namespace spillway::collective {

// Which ranks own file domains, in the order of the domains: spread evenly over nodes and ranks.
// node_of[r] is the node of rank r. Pure; every rank computes the same.
std::vector<int> choose_aggregators(std::span<const int> node_of, const Policy& policy);

// Cuts `range` into one domain for each of `count` aggregators: equal lengths rounded up to the alignment, the boundaries multiples
// of it. Domains at the end may be empty. Alignment 0: pages, or 1 MiB where domains are long enough not to suffer from it.
std::vector<extent::Extent> make_domains(const extent::Extent& range, std::size_t count, std::int64_t alignment);

}  // namespace spillway::collective
