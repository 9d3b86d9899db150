#include "collective/placement.h"

#include <algorithm>
#include <cassert>

#include "view/copy.h"

namespace spillway::collective {
namespace {

// Walks the part of a move that lies in each run of a landing: visit(move part, landing bytes). The moves come in file order, so the
// runs are walked once.
class RunWalker {
 public:
  explicit RunWalker(const LandingView& landing) : landing_(landing), bytes_(landing.bytes) {}

  template <typename Visit>
  void walk(view::Move move, Visit&& visit) {
    while (move.count > 0) {
      skip_to(move.file_offset);
      const extent::Extent& run = landing_.runs[run_];
      // How many whole pieces of the move lie in this run; the first one does.
      const std::int64_t room = run.end() - move.file_offset - move.length;
      assert(move.file_offset >= run.offset && room >= 0);
      const std::int64_t fitting = move.count == 1 || move.file_stride == 0 ? 1 : room / move.file_stride + 1;
      view::Move part = move;
      part.count = std::min(move.count, fitting);
      visit(part, bytes_ + (part.file_offset - run.offset));
      move.count -= part.count;
      move.file_offset += part.count * move.file_stride;
      move.memory += part.count * move.memory_stride;
    }
  }

 private:
  void skip_to(std::int64_t offset) {
    while (landing_.runs[run_].end() <= offset) {
      bytes_ += landing_.runs[run_].length;
      ++run_;
      assert(run_ < landing_.runs.size());
    }
  }
  const LandingView& landing_;
  std::byte* bytes_;
  std::size_t run_ = 0;
};

}  // namespace

void move_bytes(const Source& source, const LandingView& landing, Direction direction) {
  const view::ViewRange part = view::clip(*source.view, source.range, landing.bounds());
  if (part.length == 0) return;
  RunWalker walker(landing);
  view::MoveCursor cursor(*source.view, *source.memory, source.origin, part);
  while (!cursor.done()) {
    walker.walk(cursor.next(), [&](const view::Move& move, std::byte* bytes) {
      if (direction == Direction::to_landing) {
        view::copy_strided(bytes, move.file_stride, move.memory, move.memory_stride, move.length, move.count);
      } else {
        view::copy_strided(move.memory, move.memory_stride, bytes, move.file_stride, move.length, move.count);
      }
    });
  }
}

std::optional<std::span<const std::byte>> in_order(const Source& source) {
  const std::int64_t skipped = source.range.position - source.origin;
  extent::PatternCursor memory(source.memory->pattern, source.memory->tile_extent, skipped, source.range.length);
  const extent::StridedRun run = memory.next();
  if (memory.remaining() > 0 || (run.count > 1 && run.stride != run.length)) return std::nullopt;
  return std::span(source.memory->base + run.offset, static_cast<std::size_t>(source.range.length));
}

std::span<const std::byte> pack(const Source& source, std::vector<std::byte>& buffer) {
  if (const auto bytes = in_order(source)) return *bytes;
  buffer.resize(static_cast<std::size_t>(source.range.length));
  extent::PatternCursor memory(source.memory->pattern, source.memory->tile_extent,
                               source.range.position - source.origin, source.range.length);
  std::byte* out = buffer.data();
  while (memory.remaining() > 0) {
    const extent::StridedRun run = memory.next();
    view::copy_strided(out, run.length, source.memory->base + run.offset, run.stride, run.length, run.count);
    out += run.bytes();
  }
  return buffer;
}

void unpack(std::span<const std::byte> message, const Source& source) {
  extent::PatternCursor memory(source.memory->pattern, source.memory->tile_extent,
                               source.range.position - source.origin, source.range.length);
  const std::byte* in = message.data();
  while (memory.remaining() > 0) {
    const extent::StridedRun run = memory.next();
    view::copy_strided(source.memory->base + run.offset, run.stride, in, run.length, run.length, run.count);
    in += run.bytes();
  }
}

bool scatter_list(const view::FileView& view, const view::ViewRange& range, std::span<const LandingView> landings,
                  std::size_t pieces_max, std::vector<comm::ReceivePiece>& pieces) {
  pieces.clear();
  // Only the file side matters: a null memory that is never touched.
  const view::MemoryLayout nowhere = view::MemoryLayout::contiguous_bytes(nullptr, range.length);
  for (const LandingView& landing : landings) {
    const view::ViewRange part = view::clip(view, range, landing.bounds());
    if (part.length == 0) continue;
    RunWalker walker(landing);
    view::MoveCursor cursor(view, nowhere, range.position, part);
    while (!cursor.done()) {
      const view::Move move = cursor.next();
      if (pieces.size() + static_cast<std::size_t>(move.count) > pieces_max) return false;
      walker.walk(move, [&](const view::Move& found, std::byte* bytes) {
        for (std::int64_t i = 0; i < found.count; ++i) {
          pieces.push_back({bytes + i * found.file_stride, static_cast<std::size_t>(found.length)});
        }
      });
    }
  }
  return true;
}

}  // namespace spillway::collective
