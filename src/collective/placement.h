#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collective/call.h"
#include "collective/landing.h"
#include "comm/communicator.h"
#include "view/file_view.h"

// Moving bytes between a rank's memory, or a message, and landing memory. A message holds the bytes of a view range in view order.
namespace spillway::collective {

enum class Direction { to_landing, from_landing };

// A range of a view and the memory for it: stream byte 0 of `memory` is view byte `origin`.
struct Source {
  const view::FileView* view = nullptr;
  const view::MemoryLayout* memory = nullptr;
  std::int64_t origin = 0;
  view::ViewRange range;
};

// Moves those bytes of the source's range that lie inside the landing's bounds. Its runs contain every one of them.
void move_bytes(const Source& source, const LandingView& landing, Direction direction);

// The bytes of the source's range where they lie in memory in view order already; nothing where they do not.
std::optional<std::span<const std::byte>> in_order(const Source& source);

// The bytes of `range` from memory, in view order: points into the memory itself when that is in order already, else into `buffer`.
std::span<const std::byte> pack(const Source& source, std::vector<std::byte>& buffer);
void unpack(std::span<const std::byte> message, const Source& source);

// Where the bytes of a peer's `range` belong in the landing, as pieces of a message, in view order. False when there are more than
// `pieces_max`: then a buffer and move_bytes do better.
bool scatter_list(const view::FileView& view, const view::ViewRange& range, std::span<const LandingView> landings,
                  std::size_t pieces_max, std::vector<comm::ReceivePiece>& pieces);

}  // namespace spillway::collective
