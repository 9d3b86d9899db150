#include "collective/collective_io.h"

#include <algorithm>

#include "collective/two_phase.h"

namespace spillway::collective {

CollectiveIo::CollectiveIo(const Parts& parts) : parts_(parts) {
  for (int rank = 0; rank < parts.comm.size(); ++rank) node_of_.push_back(parts.comm.node_of(rank));
}

Status CollectiveIo::gather(const Call& call, const Policy& policy, bool write_may_fail, std::vector<Header>& headers) {
  Header mine;
  Status precondition = call.precondition;
  mine.write_may_fail = write_may_fail;
  mine.finish_may_fail = parts_.write_landing.finish_may_fail();
  mine.pending = parts_.local.pending_hull();
  if (precondition.ok()) {
    Result<std::int64_t> end = parts_.local.file_end();
    if (end.ok()) {
      mine.file_end = *end;
      mine.range = call.range;
      mine.hull = call.view->bounds(call.range.position, call.range.length);
      mine.sorted_disjoint = call.view->sorted_disjoint();
    } else {
      precondition = end.status();
    }
  }
  mine.code = precondition.code();
  mine.errno_value = precondition.errno_value();
  mine.error_offset = precondition.offset();
  mine.policy = policy;

  comm::Gathered all;
  if (Status status = parts_.comm.allgatherv(comm::bytes_of(mine), all); !status) return status;
  headers.clear();
  for (std::size_t rank = 0; rank < all.size(); ++rank) headers.push_back(comm::value_of<Header>(all[rank]));
  return common_failure(headers, precondition);
}

Status CollectiveIo::settle_between_nodes(const std::vector<Header>& headers, const Plan& plan) {
  if (parts_.comm.node_count() == 1) return {};
  const std::vector<extent::Extent> in_the_way = pending_in_the_way(headers, node_of_, plan);
  if (std::all_of(in_the_way.begin(), in_the_way.end(), [](const extent::Extent& extent) { return extent.empty(); }))
    return {};
  const extent::Extent& mine = in_the_way[static_cast<std::size_t>(parts_.comm.rank())];
  return comm::agree(parts_.comm, mine.empty() ? Status() : parts_.local.flush(mine));  // by all ranks
}

Status CollectiveIo::exchange_views(const Call& call) {
  if (views_.valid()) return {};
  return views_.exchange(parts_.comm, *call.view);
}

Status CollectiveIo::write(const Call& call, const Policy& policy) {
  const bool may_be_individual = policy.choose || policy.algorithm == Algorithm::individual;
  const bool held = call.precondition.ok() && call.range.length > 0 && may_be_individual && parts_.local.hold(call);
  std::vector<Header> headers;
  Status status = gather(call, policy, !held, headers);
  const Plan plan = status.ok() ? make_plan(headers, node_of_) : Plan();
  const bool to_use = status.ok() && plan.algorithm == Algorithm::individual && !plan.range.empty();
  if (held && !to_use) parts_.local.release();
  if (status.ok()) status = write_planned(call, headers, plan);
  if (held && to_use) parts_.local.release();
  return status;
}

Status CollectiveIo::write_planned(const Call& call, const std::vector<Header>& headers, const Plan& plan) {
  if (plan.range.empty()) return {};
  last_end_ = plan.range.end();
  if (Status status = settle_between_nodes(headers, plan); !status) return status;
  if (plan.algorithm == Algorithm::individual) {
    Status mine = call.range.length == 0 ? Status() : parts_.local.write(call);
    // Where all know that none can fail there is nothing to agree on, and nobody waits for the slowest.
    return plan.write_may_fail ? comm::agree(parts_.comm, mine) : mine;  // by all ranks
  }
  if (Status status = exchange_views(call); !status) return status;
  return write_two_phase({parts_.comm, call, headers, plan, views_}, parts_.write_landing);
}

Result<std::int64_t> CollectiveIo::read(const Call& call, const Policy& policy) {
  std::vector<Header> headers;
  if (Status status = gather(call, policy, true, headers); !status) return status;
  std::int64_t end = 0;
  for (const Header& header : headers) end = std::max(end, header.file_end);
  for (Header& header : headers) header.hull = extent::intersection(header.hull, {0, end});
  const Plan plan = make_plan(headers, node_of_);
  if (plan.range.empty()) return std::int64_t{0};
  if (Status status = settle_between_nodes(headers, plan); !status) return status;
  if (plan.algorithm == Algorithm::individual) {
    Result<std::int64_t> got =
        call.range.length == 0 ? Result<std::int64_t>(std::int64_t{0}) : parts_.local.read(call, end);
    if (Status status = comm::agree(parts_.comm, got.status()); !status) return status;  // by all ranks
    return got;
  }
  if (Status status = exchange_views(call); !status) return status;
  for (std::size_t rank = 0; rank < headers.size(); ++rank) {
    headers[rank].range = view::clip(views_[static_cast<int>(rank)], headers[rank].range, {0, end});
  }
  if (Status status = read_two_phase({parts_.comm, call, headers, plan, views_}, parts_.read_landing); !status)
    return status;
  return headers[static_cast<std::size_t>(parts_.comm.rank())].range.length;
}

}  // namespace spillway::collective
