#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "comm/team.h"

namespace spillway::comm {

// A message to `peer`, sent from or received into these pieces in order; sizes are known to both sides.
struct SendMessage {
  int peer = 0;
  std::span<const std::byte> bytes;
};
struct ReceivePiece {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};
struct ReceiveMessage {
  int peer = 0;
  std::span<const ReceivePiece> pieces;
};

// The ranks that opened a file together, and which of them share a node. Everything a collective algorithm needs from MPI, and
// nothing more, so that the same algorithm runs over MPI, over threads (thread_comm) and over modelled time.
//
// Ranks of one node form a Team: they exchange through shared memory. Messages are for other nodes, though they work between any
// two ranks.
//
// Threads: one object per rank, used by one thread at a time, always the application's own.
// Blocks: collective calls until every rank has made the same call.  Fails: peer_lost, io (the message layer).
class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  [[nodiscard]] virtual int node_count() const = 0;
  [[nodiscard]] virtual int node_of(int rank) const = 0;  // 0 <= node < node_count()
  // The ranks of this rank's node, ascending; member i of node_team() is node_ranks()[i].
  [[nodiscard]] virtual std::span<const int> node_ranks() const = 0;
  [[nodiscard]] virtual Team& node_team() = 0;

  // Collective over all ranks.
  virtual Status allgatherv(std::span<const std::byte> mine, Gathered& out) = 0;
  virtual Status barrier() = 0;
  // Sends and receives until all are through. Not collective, but every send has its receive: at most one message per ordered pair
  // of ranks and call.
  virtual Status exchange(std::span<const SendMessage> sends, std::span<const ReceiveMessage> receives) = 0;
  // Lets the layer below make progress; called while waiting for something else.
  virtual void progress() = 0;
};

// Collective: one result for all ranks. The rank whose failure has the largest code decides (the lowest such rank on a tie), so
// that every rank returns the same error class.
Status agree(Communicator& comm, const Status& mine);

// The bytes of a plain value, for allgatherv, and back.
template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}
template <typename T>
T value_of(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value{};
  if (bytes.size() == sizeof(T)) std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof(T));
  return value;
}

// A failure in a form that fits into a message.
struct WireStatus {
  Code code = Code::ok;
  std::int32_t errno_value = 0;
  std::int64_t offset = -1;
  char what[176] = {};
};
[[nodiscard]] WireStatus to_wire(const Status& status);
[[nodiscard]] Status from_wire(const WireStatus& wire, int rank);

}  // namespace spillway::comm
