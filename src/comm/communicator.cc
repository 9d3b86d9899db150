#include "comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace spillway::comm {

WireStatus to_wire(const Status& status) {
  WireStatus wire;
  wire.code = status.code();
  wire.errno_value = status.errno_value();
  wire.offset = status.offset();
  const std::size_t length = std::min(status.what().size(), sizeof wire.what - 1);
  std::memcpy(wire.what, status.what().data(), length);
  return wire;
}

Status from_wire(const WireStatus& wire, int rank) {
  if (wire.code == Code::ok) return {};
  const std::string what(wire.what, strnlen(wire.what, sizeof wire.what));
  return Status(wire.code, fmt::format("rank {}: {}", rank, what)).at_offset(wire.offset);
}

Status agree(Communicator& comm, const Status& mine) {
  const WireStatus wire = to_wire(mine);
  Gathered all;
  if (Status status = comm.allgatherv(bytes_of(wire), all); !status) return status;
  Status result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto other = value_of<WireStatus>(all[i]);
    if (other.code > result.code()) result = from_wire(other, static_cast<int>(i));
  }
  return result.code() == mine.code() ? mine : result;
}

}  // namespace spillway::comm
