#include <algorithm>
#include <cassert>

#include "view/file_view.h"

namespace spillway::view {

MoveCursor::MoveCursor(const FileView& view, const MemoryLayout& memory, std::int64_t origin, const ViewRange& range)
    : file_{view.cursor(range.position, range.length)},
      memory_{extent::PatternCursor(memory.pattern, memory.tile_extent, range.position - origin, range.length)},
      displacement_(view.displacement()),
      base_(memory.base),
      remaining_(range.length) {}

void MoveCursor::Side::refill() {
  if (run.count == 0) run = cursor.next();
}

std::int64_t MoveCursor::Side::take(std::int64_t length, std::int64_t count) {
  const std::int64_t begin = run.offset + used;
  const bool whole = length == this->length();
  used = whole ? 0 : used + length * count;
  std::int64_t pieces = whole ? count : 0;
  if (used == run.length) {
    used = 0;
    pieces = 1;
  }
  run.offset += pieces * run.stride;
  run.count -= pieces;
  return begin;
}

Move MoveCursor::next() {
  assert(!done());
  file_.refill();
  memory_.refill();
  const std::int64_t file_length = file_.length();
  const std::int64_t memory_length = memory_.length();
  const std::int64_t length = std::min(file_length, memory_length);
  // A side whose pieces are longer gives `length` bytes after `length` bytes of one piece.
  const std::int64_t file_count = file_length == length ? file_.count() : file_length / length;
  const std::int64_t memory_count = memory_length == length ? memory_.count() : memory_length / length;
  const std::int64_t count = std::min(file_count, memory_count);
  Move move;
  move.length = length;
  move.count = count;
  move.file_stride = file_length == length ? file_.run.stride : length;
  move.memory_stride = memory_length == length ? memory_.run.stride : length;
  move.file_offset = displacement_ + file_.take(length, count);
  move.memory = base_ + memory_.take(length, count);
  remaining_ -= length * count;
  return move;
}

}  // namespace spillway::view
