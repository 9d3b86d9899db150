#include "view/file_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>

#include "extent/checked.h"
#include "extent/varint.h"

namespace spillway::view {

using extent::Checked;
using extent::Extent;
using extent::Pattern;
using extent::PatternCursor;
using extent::StridedRun;

namespace {

// From the lowest to the end of the highest byte of what the cursor walks, which is sorted.
Extent hull_of(PatternCursor cursor) {
  Extent hull;
  while (cursor.remaining() > 0) {
    const StridedRun run = cursor.next();
    const std::int64_t begin = hull.empty() ? run.offset : std::min(hull.offset, run.offset);
    const std::int64_t end = hull.empty() ? run.end() : std::max(hull.end(), run.end());
    hull = {begin, end - begin};
  }
  return hull;
}

}  // namespace

FileView::FileView() : filetype_(Pattern::block(0, 1)) {}

Result<FileView> FileView::make(std::int64_t displacement, std::int64_t etype_bytes, const Pattern& filetype,
                                std::int64_t filetype_extent, bool writable) {
  const auto refuse = [](Code code, std::string_view rule) {
    return Status(code, fmt::format("file view: {} (MPI-4.1 §14.3)", rule));
  };
  if (displacement < 0) return refuse(Code::bad_argument, "the displacement must not be negative");
  if (!filetype.representable()) return refuse(Code::bad_type, "the filetype reaches beyond offsets of 63 bits");
  if (etype_bytes <= 0) return refuse(Code::bad_type, "the etype must have a size");
  if (filetype.bytes() % etype_bytes != 0) {
    return refuse(Code::bad_type, "the filetype must hold a whole number of etypes");
  }
  if (filetype.bounds().offset < 0) return refuse(Code::bad_type, "displacements in the filetype must not be negative");
  if (!filetype.empty() && filetype_extent <= 0) return refuse(Code::bad_type, "the filetype must have an extent");

  FileView view;
  view.displacement_ = displacement;
  view.etype_bytes_ = etype_bytes;
  view.filetype_extent_ = filetype_extent;
  view.filetype_ = filetype;
  view.contiguous_ = filetype.contiguous() && filetype.first_offset() == 0 && filetype.bytes() == filetype_extent;
  // Two tiles in a row show every order that any number of them does. If they do not fit, a second tile
  // cannot be reached.
  const Pattern pair = Pattern::strided(filetype, 2, filetype_extent);
  const Pattern& tiles = pair.representable() ? pair : filetype;
  view.sorted_disjoint_ = tiles.sorted_disjoint();
  if (!tiles.sorted()) return refuse(Code::bad_type, "displacements in the filetype must not decrease");
  if (writable && !view.sorted_disjoint_) {
    return refuse(Code::bad_type, "the filetype of a file opened for writing must not overlap itself");
  }
  return view;
}

std::int64_t FileView::file_offset(std::int64_t position) const {
  assert(position >= 0);
  if (filetype_.empty()) return displacement_;
  const Checked tile = Checked(position / filetype_.bytes()) * filetype_extent_;
  return (tile + displacement_ + filetype_.offset_of(position % filetype_.bytes())).value_or_max();
}

std::int64_t FileView::bytes_below(std::int64_t offset) const {
  assert(sorted_disjoint_);
  // Tile k holds its bytes within one extent from where its first byte lies, which need not be where the tile
  // begins.
  const std::int64_t first = filetype_.first_offset();
  const Checked into = Checked(offset) - displacement_ - first;
  if (filetype_.empty() || !into.ok() || into.value() <= 0) return 0;
  const std::int64_t tile = into.value() / filetype_extent_;
  return tile * filetype_.bytes() + filetype_.bytes_below(first + into.value() % filetype_extent_);
}

Extent FileView::bounds(std::int64_t position, std::int64_t length) const {
  if (length <= 0) return {};
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const std::int64_t begin = file_offset(position);
  const Checked end_position = Checked(position) + length;
  const std::int64_t last = end_position.ok() ? file_offset(end_position.value() - 1) : kLargest;
  if (last == kLargest) return {begin, kLargest - begin};
  if (sorted_disjoint_) return {begin, last + 1 - begin};

  // Pieces that overlap may reach back before the first byte and beyond the last one: the cut tiles at either
  // end are walked, and the whole ones between them lie inside the bounds of the first and the last of these.
  if (!(Checked(last) + filetype_.bounds().length).ok()) return {begin, kLargest - begin};
  const std::int64_t tile_bytes = filetype_.bytes();
  const std::int64_t head = std::min(length, tile_bytes - position % tile_bytes);
  const std::int64_t tail = std::min(length - head, (position + length) % tile_bytes);
  const std::int64_t whole = (length - head - tail) / tile_bytes;
  std::vector<Extent> parts = {hull_of(cursor(position, head)), hull_of(cursor(position + length - tail, tail))};
  if (whole > 0) {
    const Extent tile = filetype_.bounds();
    const std::int64_t first_whole = (position / tile_bytes + 1) * filetype_extent_;
    parts.push_back({tile.offset + first_whole, tile.length + (whole - 1) * filetype_extent_});
  }
  const Extent hull = extent::ExtentList::from_unsorted(std::move(parts)).bounds();
  return {displacement_ + hull.offset, hull.length};
}

PatternCursor FileView::cursor(std::int64_t position, std::int64_t length) const {
  return {filetype_, filetype_extent_, position, length};
}

extent::TiledAccess FileView::access(std::int64_t position, std::int64_t length) const {
  assert(sorted_disjoint_);
  return {filetype_, displacement_, filetype_extent_, position, length};
}

void FileView::serialize(std::vector<std::byte>& out) const {
  extent::put_signed(out, displacement_);
  extent::put_signed(out, etype_bytes_);
  extent::put_signed(out, filetype_extent_);
  filetype_.serialize(out);
}

Result<FileView> FileView::parse(std::span<const std::byte> bytes) {
  extent::VarintReader in(bytes);
  const std::int64_t displacement = in.signed_number();
  const std::int64_t etype_bytes = in.signed_number();
  const std::int64_t filetype_extent = in.signed_number();
  Result<Pattern> filetype = Pattern::parse(in.rest());
  if (!filetype.ok()) return filetype.status();
  Result<FileView> view = make(displacement, etype_bytes, filetype.value(), filetype_extent, false);
  if (!view.ok()) return Status(Code::corrupt, "from another process: " + view.status().what());
  return view;
}

ViewRange clip(const FileView& view, const ViewRange& access, const Extent& range) {
  const std::int64_t begin = std::max(access.position, view.bytes_below(range.offset));
  const std::int64_t end = std::min(access.position + access.length, view.bytes_below(range.end()));
  return {begin, std::max<std::int64_t>(0, end - begin)};
}

MemoryLayout MemoryLayout::contiguous_bytes(void* base, std::int64_t bytes) {
  return {static_cast<std::byte*>(base), Pattern::block(0, bytes), bytes};
}

bool MemoryLayout::contiguous() const {
  return pattern.empty() || (pattern.contiguous() && pattern.bytes() == tile_extent);
}

}  // namespace spillway::view
