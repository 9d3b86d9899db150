#include "file/local_io.h"

#include <algorithm>
#include <cstring>

#include "collective/placement.h"
#include "file/landings.h"
#include "view/copy.h"

namespace spillway::file {
namespace {

// A call with more pieces is worked off in parts, so that lists stay short whatever the view.
constexpr std::size_t kRunsPerPart = 4096;
// Shorter pieces are gathered in a buffer before they are written, longer ones go from where they are.
constexpr std::int64_t kGatherPieceMax = 16 * 1024;
constexpr std::size_t kGatherBytesMax = 4 << 20;
constexpr std::int64_t kDirectReadBytesMin = 64 * 1024;

// Cuts an access into parts of at most kRunsPerPart file extents.
class PartWalker {
 public:
  PartWalker(const view::FileView& view, const view::ViewRange& range)
      : view_(view), at_(range.position), end_(range.position + range.length) {}

  // The next part of the view range and the file extents it covers; false at the end.
  bool next(view::ViewRange& part, extent::ExtentList& runs) {
    if (at_ == end_) return false;
    runs = {};
    part = {at_, 0};
    extent::PatternCursor cursor = view_.cursor(at_, end_ - at_);
    while (cursor.remaining() > 0 && runs.size() < kRunsPerPart) {
      const extent::StridedRun run = cursor.next();
      const auto room = static_cast<std::int64_t>(kRunsPerPart - runs.size());
      const std::int64_t count = std::min(run.count, run.stride == run.length ? run.count : room);
      for (std::int64_t i = 0; i < count; ++i) {
        runs.append({view_.displacement() + run.offset + i * run.stride, run.length});
      }
      part.length += count * run.length;
      if (count < run.count) break;
    }
    at_ += part.length;
    return true;
  }

 private:
  const view::FileView& view_;
  std::int64_t at_;
  std::int64_t end_;
};

// Collects pieces that follow each other in the file and writes them in few requests.
class GatheringWriter {
 public:
  explicit GatheringWriter(storage::File& file) : file_(file) {}

  Status add(const view::Move& move) {
    for (std::int64_t i = 0; i < move.count; ++i) {
      const std::int64_t offset = move.file_offset + i * move.file_stride;
      const auto length = static_cast<std::size_t>(move.length);
      if (offset != begin_ + static_cast<std::int64_t>(buffer_.size()) || buffer_.size() + length > kGatherBytesMax ||
          move.length > kGatherPieceMax) {
        if (Status status = flush(); !status) return status;
        begin_ = offset;
      }
      const std::byte* bytes = move.memory + i * move.memory_stride;
      if (move.length > kGatherPieceMax) {
        const iovec piece{const_cast<std::byte*>(bytes), length};
        if (Status status = file_.write(offset, {&piece, 1}); !status) return status;
        begin_ = offset + move.length;
        continue;
      }
      buffer_.insert(buffer_.end(), bytes, bytes + length);
    }
    return {};
  }
  Status flush() {
    if (buffer_.empty()) return {};
    const iovec piece{buffer_.data(), buffer_.size()};
    Status status = file_.write(begin_, {&piece, 1});
    begin_ += static_cast<std::int64_t>(buffer_.size());
    buffer_.clear();
    return status;
  }

 private:
  storage::File& file_;
  std::int64_t begin_ = -1;
  std::vector<std::byte> buffer_;
};

// Collects pieces to read that lie close together in the file and reads them through one window.
class SievingReader {
 public:
  explicit SievingReader(IoContext& context) : context_(context) {}

  Status add(view::Move move) {
    while (move.count > 0) {
      if (move.length >= kDirectReadBytesMin) {
        if (Status status = read_span(context_, {move.file_offset, move.length}, move.memory); !status) return status;
        advance(move, 1);
        continue;
      }
      const std::int64_t fitting = pieces_that_fit(move);
      if (fitting == 0) {
        if (Status status = flush(); !status) return status;
        continue;
      }
      view::Move part = move;
      part.count = fitting;
      moves_.push_back(part);
      const std::int64_t begin = moves_.size() == 1 ? part.file_offset : window_.offset;
      const std::int64_t end = part.file_offset + (part.count - 1) * part.file_stride + part.length;
      window_ = {begin, std::max(end, window_.empty() ? end : window_.end()) - begin};
      advance(move, fitting);
    }
    return {};
  }
  Status flush() {
    if (moves_.empty()) return {};
    buffer_.resize(static_cast<std::size_t>(window_.length));
    Status status = read_span(context_, window_, buffer_.data());
    if (status.ok()) {
      for (const view::Move& move : moves_) {
        const std::byte* from = buffer_.data() + (move.file_offset - window_.offset);
        view::copy_strided(move.memory, move.memory_stride, from, move.file_stride, move.length, move.count);
      }
    }
    moves_.clear();
    window_ = {};
    return status;
  }

 private:
  static void advance(view::Move& move, std::int64_t count) {
    move.count -= count;
    move.file_offset += count * move.file_stride;
    move.memory += count * move.memory_stride;
  }
  // How many leading pieces of a move go into the window: no large gap, and not beyond its size.
  [[nodiscard]] std::int64_t pieces_that_fit(const view::Move& move) const {
    const std::int64_t begin = moves_.empty() ? move.file_offset : window_.offset;
    if (!moves_.empty() && (move.file_offset < window_.offset || move.file_offset - window_.end() > kSieveGapBytes))
      return 0;
    if (move.file_offset + move.length - begin > kSieveWindowBytes) return moves_.empty() ? 1 : 0;
    if (move.count == 1 || move.file_stride - move.length > kSieveGapBytes || move.file_stride < move.length) return 1;
    return std::min(move.count, (kSieveWindowBytes - (move.file_offset + move.length - begin)) / move.file_stride + 1);
  }

  IoContext& context_;
  std::vector<view::Move> moves_;
  extent::Extent window_;
  std::vector<std::byte> buffer_;
};

// View bytes of the access that lie below `end`: all, or a leading part. A view that is only read may list its pieces overlapping,
// but in ascending order, so that what lies below is a leading part there too.
std::int64_t length_below(const view::FileView& view, const view::ViewRange& range, std::int64_t end) {
  if (range.length == 0 || view.bounds(range.position, range.length).end() <= end) return range.length;
  if (view.sorted_disjoint()) return view::clip(view, range, {0, end}).length;
  std::int64_t length = 0;
  extent::PatternCursor cursor = view.cursor(range.position, range.length);
  while (cursor.remaining() > 0) {
    const extent::StridedRun run = cursor.next();
    for (std::int64_t i = 0; i < run.count; ++i) {
      const std::int64_t offset = view.displacement() + run.offset + i * run.stride;
      const std::int64_t below = std::clamp<std::int64_t>(end - offset, 0, run.length);
      length += below;
      if (below < run.length) return length;
    }
  }
  return length;
}

}  // namespace

Status FileLocalIo::write(const collective::Call& call) {
  return context_.staging ? write_staged(call) : write_direct(call);
}

// What is one piece in the file takes no more room than its bytes.
bool FileLocalIo::hold(const collective::Call& call) {
  if (!context_.staging || !call.view->sorted_disjoint()) return false;
  if (call.view->bounds(call.range.position, call.range.length).length != call.range.length) return false;
  return context_.runtime.journal().hold(call.range.length, hold_);
}

void FileLocalIo::release() { context_.runtime.journal().release(hold_); }

Status FileLocalIo::write_independent(const collective::Call& call) {
  return context_.staging_alone ? write_staged(call) : write_direct(call);
}

Status FileLocalIo::write_staged(const collective::Call& call) {
  journal::Journal& journal = context_.runtime.journal();
  const collective::Source whole{call.view, call.memory, call.range.position, call.range};
  PartWalker walker(*call.view, call.range);
  view::ViewRange part;
  extent::ExtentList runs;
  while (walker.next(part, runs)) {
    std::int64_t done = 0;  // of the part, in view order where it is one piece
    extent::RunCursor cursor{&runs, 0, 0};
    while (!cursor.at_end()) {
      Result<journal::Journal::Appended> appended =
          append_waiting(context_, cursor, {context_.slot(), {}, INT64_MAX, &hold_});
      if (!appended) return appended.status();
      const auto bytes = static_cast<std::int64_t>(appended->view.header->payload_bytes);
      collective::Source source = whole;
      const bool one_piece = runs.size() == 1;
      source.range = one_piece ? view::ViewRange{part.position + done, bytes} : part;
      if (const auto in_order = appended->cold && one_piece ? collective::in_order(source) : std::nullopt) {
        journal.place(*appended, 0, *in_order);
      } else {
        collective::move_bytes(source, {appended->view.runs, appended->view.payload},
                               collective::Direction::to_landing);
      }
      done += bytes;
      journal.commit(appended->id);
      context_.runtime.drain().submit(appended->id, context_.target);
    }
  }
  return {};
}

Status FileLocalIo::write_direct(const collective::Call& call) {
  if (Status status = settle(context_, call.view->bounds(call.range.position, call.range.length)); !status)
    return status;
  GatheringWriter writer(context_.storage());
  view::MoveCursor cursor(*call.view, *call.memory, call.range.position, call.range);
  while (!cursor.done()) {
    if (Status status = writer.add(cursor.next()); !status) return status;
  }
  return writer.flush();
}

Result<std::int64_t> FileLocalIo::read(const collective::Call& call, std::int64_t end) {
  const view::ViewRange range{call.range.position, length_below(*call.view, call.range, end)};
  if (range.length == 0) return std::int64_t{0};
  SievingReader reader(context_);
  view::MoveCursor cursor(*call.view, *call.memory, call.range.position, range);
  while (!cursor.done()) {
    if (Status status = reader.add(cursor.next()); !status) return status;
  }
  if (Status status = reader.flush(); !status) return status;
  return range.length;
}

Result<std::int64_t> FileLocalIo::file_end() {
  // What is pending first: what is not pending any more counts in the file's size by then.
  const std::int64_t pending_end = context_.runtime.pending().end(context_.slot());
  Result<storage::FileAttributes> attributes = context_.storage().attributes();
  if (!attributes) return attributes.status();
  return std::max(pending_end, attributes->bytes);
}

extent::Extent FileLocalIo::pending_hull() { return context_.runtime.pending().hull(context_.slot()); }

Status FileLocalIo::flush(const extent::Extent& range) {
  if (!pending_hull().overlaps(range)) return {};
  return context_.runtime.drain().wait(context_.slot(), context_.progress());
}

}  // namespace spillway::file
