#include "journal/pending.h"

#include <algorithm>

#include "base/log.h"
#include "journal/record.h"

namespace spillway::journal {
namespace {

// The runs of a record that lie inside `range`, with where their bytes are.
template <typename Visit>
void for_each_run(const RecordView& record, const extent::Extent& range, Visit&& visit) {
  const std::byte* bytes = record.payload;
  for (const extent::Extent& run : record.runs) {
    if (run.offset >= range.end()) break;
    const extent::Extent part = extent::intersection(run, range);
    if (!part.empty()) visit(part, bytes + (part.offset - run.offset));
    bytes += run.length;
  }
}

bool any_run(const RecordView& record, const extent::Extent& range) {
  bool found = false;
  for_each_run(record, range, [&](const extent::Extent&, const std::byte*) { found = true; });
  return found;
}

}  // namespace

void Pending::for_each_elsewhere(std::uint32_t file, const extent::Extent& range,
                                 const std::function<bool(const RecordView&)>& visit) {
  if (node_.file(file).pending_records.load(std::memory_order_acquire) == 0) return;
  bool go_on = true;
  for (std::uint32_t process = 0; process < node_.process_count() && go_on; ++process) {
    if (process == own_.process()) continue;
    const std::shared_ptr<JournalMapping> journal = node_.journal(process);
    if (journal == nullptr) continue;
    const FilePending& summary = journal->pending(file);
    if (summary.count.load(std::memory_order_acquire) == 0) continue;
    const std::int64_t begin = summary.begin.load(std::memory_order_relaxed);
    const std::int64_t end = summary.end.load(std::memory_order_relaxed);
    if (!range.overlaps({begin, end - begin})) continue;
    const JournalHeader& header = journal->header();
    for (std::uint32_t i = 0; i < header.segment_count && go_on; ++i) {
      const SegmentDescriptor& descriptor = journal->segment(i);
      if (descriptor.state.load(std::memory_order_seq_cst) != SegmentState::in_use) continue;
      const SegmentBytes segment{journal->segment_data(i), descriptor.tail.load(std::memory_order_acquire),
                                 header.segment_bytes};
      const Status status = walk_segment(segment, [&](const RecordView& record, std::uint64_t) {
        if (record.header->file != file || !range.overlaps(record.bounds())) return true;
        if (!Journal::valid(node_, *record.header)) return true;
        go_on = visit(record);
        return go_on;
      });
      if (!status) base::log_error("journal of another process: " + status.to_string());
    }
  }
}

void Pending::collect(std::uint32_t file, const extent::Extent& range, std::vector<Piece>& pieces) {
  const auto add = [&](const RecordView& record) {
    for_each_run(record, range, [&](const extent::Extent& part, const std::byte* bytes) {
      pieces.push_back({record.header->sequence, part, bytes, record.header});
    });
  };
  for (const Journal::Piece& piece : own_.find(file, range)) {
    const RecordHeader* header = own_.view(piece.id).header;
    pieces.push_back({header->sequence, piece.extent, piece.bytes, header});
  }
  for (const RecordId& id : own_.filling(file)) {
    const RecordView record = own_.view(id);
    if (Journal::valid(node_, *record.header)) add(record);
  }
  for_each_elsewhere(file, range, [&](const RecordView& record) {
    add(record);
    return true;
  });
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.sequence < b.sequence; });
}

extent::ExtentList Pending::read(std::uint32_t file, const extent::ExtentList& wanted, const Sink& sink) {
  if (wanted.empty() || node_.file(file).pending_records.load(std::memory_order_acquire) == 0) return {};
  base::MutexLock lock(mutex_);
  std::vector<Piece> pieces;
  for (;;) {
    const ReadSection section(node_, own_.process(), ReaderRole::application);
    pieces.clear();
    collect(file, wanted.bounds(), pieces);
    std::vector<extent::Extent> covered;
    for (const Piece& piece : pieces) {
      for (std::size_t i = wanted.find(piece.extent.offset); i < wanted.size(); ++i) {
        const extent::Extent part = extent::intersection(wanted[i], piece.extent);
        if (part.empty()) break;
        sink(part.offset, {piece.bytes + (part.offset - piece.extent.offset), static_cast<std::size_t>(part.length)});
        covered.push_back(part);
      }
    }
    // If a piece has reached the file meanwhile, a newer one that covers it may have too, before this look at its owner:
    // look again. As long as all are still pending, nothing newer that overlaps them can have been drained.
    const bool all_pending = std::all_of(pieces.begin(), pieces.end(), [](const Piece& piece) {
      const RecordState state = piece.header->state.load(std::memory_order_acquire);
      return state == RecordState::committed || state == RecordState::filling;
    });
    if (all_pending) return extent::ExtentList::from_unsorted(std::move(covered));
  }
}

bool Pending::overlaps(std::uint32_t file, const extent::Extent& range) {
  if (node_.file(file).pending_records.load(std::memory_order_acquire) == 0) return false;
  base::MutexLock lock(mutex_);
  const ReadSection section(node_, own_.process(), ReaderRole::application);
  if (!own_.find(file, range).empty()) return true;
  bool found = false;
  for_each_elsewhere(file, range, [&](const RecordView& record) {
    found = any_run(record, range);
    return !found;
  });
  return found;
}

std::int64_t Pending::end(std::uint32_t file) {
  std::int64_t end = 0;
  if (node_.file(file).pending_records.load(std::memory_order_acquire) == 0) return end;
  for (std::uint32_t process = 0; process < node_.process_count(); ++process) {
    const std::shared_ptr<JournalMapping> journal = node_.journal(process);
    if (journal == nullptr) continue;
    const FilePending& summary = journal->pending(file);
    if (summary.count.load(std::memory_order_acquire) > 0)
      end = std::max(end, summary.end.load(std::memory_order_relaxed));
  }
  return end;
}

extent::Extent Pending::hull(std::uint32_t file) {
  const std::shared_ptr<JournalMapping> journal = node_.journal(own_.process());
  const FilePending& summary = journal->pending(file);
  if (summary.count.load(std::memory_order_acquire) == 0) return {};
  const std::int64_t begin = summary.begin.load(std::memory_order_relaxed);
  return {begin, summary.end.load(std::memory_order_relaxed) - begin};
}

bool Pending::older_elsewhere(std::uint32_t file, std::uint64_t sequence, const extent::Extent& bounds) {
  const ReadSection section(node_, own_.process(), ReaderRole::background);
  bool found = false;
  for_each_elsewhere(file, bounds, [&](const RecordView& record) {
    found = record.header->sequence < sequence && any_run(record, bounds);
    return !found;
  });
  return found;
}

}  // namespace spillway::journal
