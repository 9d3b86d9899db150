#include "collective/two_phase.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "collective/placement.h"

namespace spillway::collective {
namespace {

constexpr std::size_t kScatterPiecesMax = 1024;

// What an aggregator announces for a round; the refs follow it.
struct WindowHeader {
  Code code = Code::ok;  // something failed on this rank, in this round or before
  bool more = false;     // another round will be needed
  std::int64_t error_offset = -1;
};

struct Window {
  int owner = 0;
  std::vector<LandingRef> refs;
  // From the first to the last byte of the refs: they ascend.
  [[nodiscard]] extent::Extent bounds() const {
    return {refs.front().bounds.offset, refs.back().bounds.end() - refs.front().bounds.offset};
  }
};

// One round as every rank sees it.
struct Round {
  std::vector<Window> windows;  // the non-empty ones
  Status failure;
  bool more = false;
};

class Exchange {
 public:
  explicit Exchange(const TwoPhase& parts) : parts_(parts) {
    const int index = parts.plan.owner_index(parts.comm.rank());
    if (index < 0) return;
    needed_ = touched(parts.headers, parts.views, parts.plan.domains[static_cast<std::size_t>(index)]);
    cursor_ = {&needed_, 0, 0};
  }

  // What this rank has still to make room for as an aggregator.
  [[nodiscard]] extent::RunCursor& cursor() { return cursor_; }
  [[nodiscard]] bool owes_more() const { return cursor_.runs != nullptr && !cursor_.at_end(); }

  // Collective: everyone announces its window, or that it failed.
  Status announce(const std::vector<LandingRef>& refs, const Status& mine, Round& round) {
    WindowHeader header;
    header.code = mine.code();
    header.error_offset = mine.offset();
    header.more = owes_more();
    std::vector<std::byte> bytes(sizeof header + refs.size() * sizeof(LandingRef));
    std::memcpy(bytes.data(), &header, sizeof header);
    if (!refs.empty()) std::memcpy(bytes.data() + sizeof header, refs.data(), refs.size() * sizeof(LandingRef));
    comm::Gathered all;
    if (Status status = parts_.comm.allgatherv(bytes, all); !status) return status;

    round = {};
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const std::span<const std::byte> part = all[rank];
      const auto other = comm::value_of<WindowHeader>(part.first(sizeof(WindowHeader)));
      round.more = round.more || other.more;
      if (other.code > round.failure.code()) {
        round.failure = other.code == mine.code()
                            ? mine
                            : Status(other.code, fmt::format("rank {} failed: {}", rank, name_of(other.code)))
                                  .at_offset(other.error_offset);
      }
      const std::span<const std::byte> rest = part.subspan(sizeof(WindowHeader));
      if (rest.empty()) continue;
      Window window{static_cast<int>(rank), std::vector<LandingRef>(rest.size() / sizeof(LandingRef))};
      std::memcpy(window.refs.data(), rest.data(), rest.size());
      round.windows.push_back(std::move(window));
    }
    return {};
  }

  // Between this rank's memory and the landings of its own node.
  template <typename Landing>
  void move_on_node(const Round& round, Landing& landing, Direction direction) {
    const Source source = own_source();
    for (const Window& window : round.windows) {
      if (!same_node(window.owner)) continue;
      for (const LandingRef& ref : window.refs) {
        const std::int64_t bytes = view::clip(*source.view, source.range, ref.bounds).length;
        if (bytes > 0) move_bytes(source, landing.resolve(ref, bytes), direction);
      }
    }
  }

  // Between nodes: this rank's bytes to the aggregators elsewhere, and theirs to this one.
  template <typename Landing>
  Status send_to_owners(const Round& round, Landing& landing) {
    if (parts_.comm.node_count() == 1) return {};
    Messages messages;
    for (const Window& window : round.windows) {
      if (window.owner == parts_.comm.rank()) {
        add_transfers_of_owner(window, landing, Direction::to_landing, messages);
      } else if (!same_node(window.owner)) {
        add_own_send(window, messages);
      }
    }
    if (Status status = messages.exchange(parts_.comm); !status) return status;
    for (const Deferred& deferred : messages.deferred) place_deferred(deferred);
    return {};
  }

  template <typename Landing>
  Status fetch_from_owners(const Round& round, Landing& landing) {
    if (parts_.comm.node_count() == 1) return {};
    Messages messages;
    for (const Window& window : round.windows) {
      if (window.owner == parts_.comm.rank()) {
        add_transfers_of_owner(window, landing, Direction::from_landing, messages);
      } else if (!same_node(window.owner)) {
        add_own_receive(window, messages);
      }
    }
    if (Status status = messages.exchange(parts_.comm); !status) return status;
    for (const Deferred& deferred : messages.deferred) unpack(*deferred.buffer, deferred.source);
    return {};
  }

 private:
  // A message that was received into a buffer and has to be taken apart afterwards.
  struct Deferred {
    std::vector<std::byte>* buffer;
    Source source;  // of a peer (to_landing: memory unused) or of this rank (from_landing)
    std::vector<LandingView> landings;
  };
  struct Messages {
    std::vector<comm::SendMessage> sends;
    std::vector<comm::ReceiveMessage> receives;
    std::vector<std::unique_ptr<std::vector<std::byte>>> buffers;  // stable addresses
    std::vector<std::unique_ptr<std::vector<comm::ReceivePiece>>> pieces;
    std::vector<Deferred> deferred;

    std::vector<std::byte>& new_buffer(std::size_t bytes) {
      buffers.push_back(std::make_unique<std::vector<std::byte>>(bytes));
      return *buffers.back();
    }
    std::vector<comm::ReceivePiece>& new_pieces() {
      pieces.push_back(std::make_unique<std::vector<comm::ReceivePiece>>());
      return *pieces.back();
    }
    Status exchange(comm::Communicator& comm) { return comm.exchange(sends, receives); }
  };

  [[nodiscard]] bool same_node(int rank) const {
    return parts_.comm.node_of(rank) == parts_.comm.node_of(parts_.comm.rank());
  }
  [[nodiscard]] view::ViewRange range_of(int rank) const {
    return parts_.headers[static_cast<std::size_t>(rank)].range;
  }
  [[nodiscard]] Source own_source() const {
    return {parts_.call.view, parts_.call.memory, parts_.call.range.position, range_of(parts_.comm.rank())};
  }

  void add_own_send(const Window& window, Messages& messages) {
    Source source = own_source();
    source.range = view::clip(*source.view, source.range, window.bounds());
    if (source.range.length == 0) return;
    messages.sends.push_back({window.owner, pack(source, messages.new_buffer(0))});
  }

  void add_own_receive(const Window& window, Messages& messages) {
    Source source = own_source();
    source.range = view::clip(*source.view, source.range, window.bounds());
    if (source.range.length == 0) return;
    std::vector<std::byte>& buffer = messages.new_buffer(static_cast<std::size_t>(source.range.length));
    auto& pieces = messages.new_pieces();
    pieces.push_back({buffer.data(), buffer.size()});
    messages.receives.push_back({window.owner, pieces});
    messages.deferred.push_back({&buffer, source, {}});
  }

  // As the owner of a window: what comes from, or goes to, each rank of another node.
  template <typename Landing>
  void add_transfers_of_owner(const Window& window, Landing& landing, Direction direction, Messages& messages) {
    std::vector<LandingView> landings;
    for (const LandingRef& ref : window.refs) landings.push_back(landing.resolve(ref, ref.bounds.length));
    for (int rank = 0; rank < parts_.comm.size(); ++rank) {
      if (same_node(rank)) continue;
      const view::FileView& view = parts_.views[rank];
      const view::ViewRange part = view::clip(view, range_of(rank), window.bounds());
      if (part.length == 0) continue;
      if (direction == Direction::to_landing) {
        auto& pieces = messages.new_pieces();
        if (!scatter_list(view, part, landings, kScatterPiecesMax, pieces)) {
          std::vector<std::byte>& buffer = messages.new_buffer(static_cast<std::size_t>(part.length));
          pieces.assign(1, {buffer.data(), buffer.size()});
          messages.deferred.push_back({&buffer, {&view, nullptr, part.position, part}, landings});
        }
        messages.receives.push_back({rank, pieces});
      } else {
        std::vector<std::byte>& buffer = messages.new_buffer(static_cast<std::size_t>(part.length));
        const view::MemoryLayout layout = view::MemoryLayout::contiguous_bytes(buffer.data(), part.length);
        const Source peer{&view, &layout, part.position, part};
        for (const LandingView& one : landings) move_bytes(peer, one, Direction::from_landing);
        messages.sends.push_back({rank, buffer});
      }
    }
  }

  static void place_deferred(const Deferred& deferred) {
    const view::MemoryLayout layout = view::MemoryLayout::contiguous_bytes(
        deferred.buffer->data(), static_cast<std::int64_t>(deferred.buffer->size()));
    Source source = deferred.source;
    source.memory = &layout;
    for (const LandingView& landing : deferred.landings) move_bytes(source, landing, Direction::to_landing);
  }

  const TwoPhase& parts_;
  extent::ExtentList needed_;
  extent::RunCursor cursor_;
};

}  // namespace

Status write_two_phase(const TwoPhase& parts, WriteLanding& landing) {
  Exchange exchange(parts);
  std::vector<LandingRef> refs;
  Round round;
  Status mine;
  do {
    refs.clear();
    if (mine.ok() && exchange.owes_more()) mine = landing.accept(exchange.cursor(), refs);
    // Made by all ranks: who failed says so here, where its peers are waiting.
    if (Status status = exchange.announce(refs, mine, round); !status) return status;
    if (round.failure.ok()) {
      exchange.move_on_node(round, landing, Direction::to_landing);
      mine = exchange.send_to_owners(round, landing);
      if (parts.comm.node_count() > 1) round.failure = comm::agree(parts.comm, mine);  // by all ranks
    }
    if (!round.failure.ok()) {
      if (!refs.empty()) (void)landing.finish(false);
      return round.failure;
    }
    // By all ranks of the node: from here on the bytes count, before anyone can return.
    if (Status status = parts.comm.node_team().commit(); !status) return status;
    if (!refs.empty()) mine = landing.finish(true);
  } while (round.more);
  // Between nodes the commits of other nodes are known only now.
  if (!parts.plan.finish_may_fail && parts.comm.node_count() == 1) return mine;
  return comm::agree(parts.comm, mine);  // by all ranks
}

Status read_two_phase(const TwoPhase& parts, ReadLanding& landing) {
  Exchange exchange(parts);
  std::vector<LandingRef> refs;
  Round round;
  Status mine;
  do {
    refs.clear();
    if (mine.ok() && exchange.owes_more()) mine = landing.fetch(exchange.cursor(), refs);
    if (Status status = exchange.announce(refs, mine, round); !status) return status;  // by all ranks
    if (round.failure.ok()) {
      exchange.move_on_node(round, landing, Direction::from_landing);
      mine = exchange.fetch_from_owners(round, landing);
    }
    // By all ranks: nobody reads the landings any more. After a failure nobody has begun to.
    if (round.failure.ok()) {
      if (Status status = parts.comm.barrier(); !status) return status;
    }
    if (!refs.empty()) landing.release();
    if (!round.failure.ok()) return round.failure;
  } while (round.more);
  return comm::agree(parts.comm, mine);  // by all ranks
}

}  // namespace spillway::collective
