#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "collective/call.h"
#include "collective/view_table.h"
#include "extent/extent.h"
#include "extent/union.h"

namespace spillway::collective {

// What every rank tells every other at the begin of a collective call. Travels as bytes.
struct Header {
  extent::Extent hull;  // of the rank's access in the file; empty: nothing to do
  view::ViewRange range;
  std::int64_t file_end = 0;     // as this rank sees it
  extent::Extent pending;        // hull of what its process holds pending for the file
  Code code = Code::ok;          // of its precondition
  bool sorted_disjoint = true;   // of its view
  bool finish_may_fail = false;  // of its landing
  bool write_may_fail = true;    // its own write, should that be what the ranks do
  std::int32_t errno_value = 0;
  std::int64_t error_offset = -1;
  Policy policy;
};

// How a call will be carried out: a pure function of the headers, so that every rank has the same.
struct Plan {
  Algorithm algorithm = Algorithm::individual;
  extent::Extent range;  // hull of all accesses
  bool finish_may_fail = false;
  bool write_may_fail = false;
  // two_phase:
  std::vector<int> owners;
  std::vector<extent::Extent> domains;  // of owners[i]

  // The index of a rank among the owners; -1: it is none.
  [[nodiscard]] int owner_index(int rank) const;
};

// The failure that all ranks return, if any had a precondition that failed: the gravest code, of the lowest rank.
[[nodiscard]] Status common_failure(std::span<const Header> headers, const Status& mine);

[[nodiscard]] Plan make_plan(std::span<const Header> headers, std::span<const int> node_of);

// Some rank's hull overlaps another's: the pattern that exchanging pieces between ranks is for.
[[nodiscard]] bool interleaved(std::span<const Header> headers);

// Which ranks must write out what they hold pending before this call's bytes go to, or are read on, another node.
[[nodiscard]] std::vector<extent::Extent> pending_in_the_way(std::span<const Header> headers,
                                                             std::span<const int> node_of, const Plan& plan);

// The file bytes that the ranks touch inside a domain.
[[nodiscard]] extent::ExtentList touched(std::span<const Header> headers, const ViewTable& views,
                                         const extent::Extent& domain);

}  // namespace spillway::collective
