#include "journal/journal.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <utility>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include "base/units.h"
#include "journal/record.h"

namespace spillway::journal {
namespace {

// A record is not begun in the rest of a segment for less payload than this, unless that is all there is.
constexpr std::uint64_t kWorthwhileBytes = 64 * 1024;
// Payloads of this size and above are aligned to pages like their place in the file, so that they can be drained directly.
constexpr std::uint64_t kAlignedPayloadMin = 64 * 1024;

}  // namespace

Result<std::unique_ptr<Journal>> Journal::create(Node& node, const JournalOptions& options) {
  Result<std::uint32_t> process = node.add_process(options.rank);
  if (!process) return process.status();
  std::unique_ptr<Journal> journal(new Journal(node, options));
  journal->process_ = *process;

  Result<base::Mapping> mapping = create_journal_file(node.journal_path(*process), *process, options);
  if (!mapping) {
    node.forget_process(*process);
    return mapping.status();
  }
  journal->mapping_ = std::make_shared<JournalMapping>(std::move(mapping).value());
  {
    base::MutexLock lock(journal->mutex_);
    const std::uint32_t segments = journal->mapping_->header().segment_count;
    journal->segments_.resize(segments);
    for (std::uint32_t i = segments; i > kReservedSegments; --i) journal->untouched_.push_back(i - 1);
    for (std::uint32_t i = 0; i < kReservedSegments; ++i) journal->free_.push_back(i);
  }
  node.publish_journal(*process, journal->mapping_);
  return journal;
}

Journal::~Journal() {
  if (mapping_ == nullptr) return;
  node_.remove_process(process_, pending_bytes() > 0);
}

// --- limits ---

void Journal::set_limit(std::int64_t bytes) {
  base::MutexLock lock(mutex_);
  if (bytes == limit_) return;
  limit_ = bytes;
  trim_pool();
  space_.notify_all();
}

std::int64_t Journal::limit() const {
  base::MutexLock lock(mutex_);
  return limit_;
}

std::int64_t Journal::free_bytes() {
  base::MutexLock lock(mutex_);
  reclaim_limbo(false);
  const std::int64_t whole = std::max<std::int64_t>(0, static_cast<std::int64_t>(segments_allowed()) - in_use_ - held_);
  return whole * std::min(options_.segment_payload_bytes, limit_);
}

std::int64_t Journal::pending_bytes() const {
  base::MutexLock lock(mutex_);
  return pending_bytes_;
}

// --- append ---

std::uint64_t Journal::tail(std::uint32_t segment) const {
  return mapping_->segment(segment).tail.load(std::memory_order_relaxed);  // ours alone to change
}

Journal::Layout Journal::fit(const extent::RunCursor& cursor, std::int64_t bytes_max, std::uint32_t segment) const {
  const std::uint64_t begin = tail(segment);
  std::uint64_t usable = mapping_->header().segment_bytes;
  const bool small_limit = !segments_[segment].scratch && limit_ < options_.segment_payload_bytes;
  if (small_limit) usable = static_cast<std::uint64_t>(limit_) + kSegmentSlackBytes;
  if (usable <= begin + sizeof(RecordHeader) + sizeof(extent::Extent) + kPageBytes) return {};
  const std::uint64_t room = usable - begin;

  // Alignment may cost up to a page; count it in from the start.
  Layout layout;
  extent::RunCursor at = cursor;
  const std::uint64_t payload_max =
      std::min({static_cast<std::uint64_t>(bytes_max), static_cast<std::uint64_t>(options_.segment_payload_bytes),
                small_limit ? static_cast<std::uint64_t>(limit_) : room});
  while (!at.at_end() && layout.payload_bytes < payload_max) {
    const std::uint64_t table = sizeof(RecordHeader) + (layout.run_count + 1) * sizeof(extent::Extent) + kPageBytes;
    if (table + layout.payload_bytes >= room) break;
    const std::uint64_t take = std::min({static_cast<std::uint64_t>(at.current().length),
                                         payload_max - layout.payload_bytes, room - table - layout.payload_bytes});
    layout.payload_bytes += take;
    ++layout.run_count;
    at.advance(static_cast<std::int64_t>(take));
    if (at.done != 0) break;
  }
  if (layout.run_count == 0) return {};

  layout.payload_offset = sizeof(RecordHeader) + layout.run_count * sizeof(extent::Extent);
  if (layout.payload_bytes >= kAlignedPayloadMin) {
    // Segments begin on pages; the payload gets the same place in its page as its first byte has in the file's block.
    const auto wanted = static_cast<std::uint64_t>(cursor.current().offset) % kPageBytes;
    const std::uint64_t now = (begin + layout.payload_offset) % kPageBytes;
    layout.payload_offset += (wanted + kPageBytes - now) % kPageBytes;
  }
  layout.record_bytes = base::round_up(layout.payload_offset + layout.payload_bytes, kRecordAlignment);
  assert(begin + layout.record_bytes <= mapping_->header().segment_bytes);
  return layout;
}

Journal::Appended Journal::lay_out(extent::RunCursor& cursor, const Append& what, std::uint32_t segment,
                                   const Layout& layout) {
  const std::uint64_t begin = tail(segment);
  std::byte* at = mapping_->segment_data(segment) + begin;
  auto* header = reinterpret_cast<RecordHeader*>(at);
  auto* runs = reinterpret_cast<extent::Extent*>(header + 1);
  std::memset(static_cast<void*>(header), 0, sizeof *header);

  std::uint64_t left = layout.payload_bytes;
  for (std::uint32_t i = 0; i < layout.run_count; ++i) {
    const extent::Extent run = cursor.current();
    const std::int64_t take = std::min(run.length, static_cast<std::int64_t>(left));
    runs[i] = {run.offset, take};
    left -= static_cast<std::uint64_t>(take);
    cursor.advance(take);
  }
  header->magic = kRecordMagic;
  header->run_count = layout.run_count;
  header->record_bytes = layout.record_bytes;
  header->payload_offset = layout.payload_offset;
  header->payload_bytes = layout.payload_bytes;
  header->file = what.file;
  header->commit_kind = what.commit.kind;
  header->team_offset = what.commit.team_offset;
  header->commit_number = what.commit.number;
  const bool scratch = what.file == kNone;
  if (!scratch) header->sequence = node_.file(what.file).next_sequence.fetch_add(1, std::memory_order_relaxed);
  header->header_hash = record_header_hash(*header);
  header->state.store(RecordState::filling, std::memory_order_relaxed);

  const RecordId id{segment, 0, begin};
  const RecordView record = view(id);
  ++segments_[segment].live_records;
  if (!scratch) {
    pending_bytes_ += static_cast<std::int64_t>(layout.payload_bytes);
    filling_.emplace_back(what.file, id);
    publish(what.file, record.bounds());
  }
  mapping_->segment(segment).tail.store(begin + layout.record_bytes, std::memory_order_release);
  return {id, record, segments_[segment].cold};
}

std::optional<Journal::Appended> Journal::try_append(extent::RunCursor& cursor, const Append& what) {
  const bool scratch = what.file == kNone;
  std::uint32_t& current = scratch ? current_scratch_ : current_;
  std::int64_t wanted = 0;
  for (extent::RunCursor at = cursor; !at.at_end() && wanted < what.bytes_max; ++at.index, at.done = 0)
    wanted += at.current().length;
  wanted = std::min(wanted, what.bytes_max);
  assert(wanted > 0);

  if (current != kNone) {
    const Layout layout = fit(cursor, what.bytes_max, current);
    const auto enough = std::min(static_cast<std::uint64_t>(wanted), kWorthwhileBytes);
    if (layout.payload_bytes >= enough) return lay_out(cursor, what, current, layout);
  }
  if (!take_segment(what)) {
    reclaim_limbo(true);
    if (!take_segment(what)) return std::nullopt;
  }
  const Layout layout = fit(cursor, what.bytes_max, current);
  assert(layout.payload_bytes > 0);
  return lay_out(cursor, what, current, layout);
}

Result<Journal::Appended> Journal::append(extent::RunCursor& cursor, const Append& what) {
  const bool scratch = what.file == kNone;
  for (;;) {
    std::uint32_t fresh = kNone;
    {
      base::MutexLock lock(mutex_);
      if (!scratch && limit_ <= 0) return Status(Code::would_block, "active buffering is off");
      if (std::optional<Appended> appended = try_append(cursor, what)) return *std::move(appended);
      fresh = fresh_segment(scratch);
      if (fresh == kNone) return Status(Code::would_block, "the journal is full");
      ++populating_;
    }
    Status status = populate(fresh);
    if (status.ok()) continue;
    base::MutexLock lock(mutex_);
    // Less memory than configured: live with the segments there are. Some are always there: those taken at the start.
    return Status(Code::would_block, status.what());
  }
}

// --- what becomes of a record ---

void Journal::place(const Appended& record, std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t at =
      mapping_->segment_offset(record.id.segment) + record.id.offset + record.view.header->payload_offset + offset;
  // The pages are there, so that a store must do where the system call will not.
  if (!mapping_->mapping().write(at, bytes)) std::memcpy(record.view.payload + offset, bytes.data(), bytes.size());
}

RecordView Journal::view(const RecordId& id) const {
  return record_view(mapping_->segment_data(id.segment) + id.offset);
}

bool Journal::valid(const Node& node, const RecordHeader& header) {
  switch (header.state.load(std::memory_order_acquire)) {
    case RecordState::committed:
      return true;
    case RecordState::filling:
      return header.commit_kind == CommitKind::by_team && node.has_word(header.team_offset) &&
             team_has_committed(node.block(header.team_offset), header.commit_number);
    case RecordState::retired:
    case RecordState::abandoned:
      return false;
  }
  return false;
}

void Journal::forget_filling(const RecordId& id) {
  std::erase_if(filling_, [&](const auto& entry) { return entry.second == id; });
}

void Journal::commit(const RecordId& id) {
  const RecordView record = view(id);
  base::MutexLock lock(mutex_);
  record.header->state.store(RecordState::committed, std::memory_order_release);
  forget_filling(id);
  Index& index = index_[record.header->file];
  std::uint64_t payload = 0;
  for (const extent::Extent& run : record.runs) {
    index.insert(run, Position{id, payload});
    payload += static_cast<std::uint64_t>(run.length);
  }
}

void Journal::abandon(const RecordId& id) { finish(id, RecordState::abandoned); }

void Journal::retire(const RecordId& id) { finish(id, RecordState::retired); }

void Journal::finish(const RecordId& id, RecordState state) {
  const RecordView record = view(id);
  {
    base::MutexLock lock(mutex_);
    const std::uint32_t file = record.header->file;
    record.header->state.store(state, std::memory_order_release);
    if (file != kNone) {
      forget_filling(id);
      if (const auto found = index_.find(file); found != index_.end()) {
        for (const extent::Extent& run : record.runs) {
          found->second.erase_if(
              run, [](const Index::Entry&) {}, [&](const Position& position) { return position.id == id; });
        }
        if (found->second.empty()) index_.erase(found);
      }
      pending_bytes_ -= static_cast<std::int64_t>(record.header->payload_bytes);
      unpublish(file);
    }
    if (--segments_[id.segment].live_records == 0) give_back(id.segment);
  }
  space_.notify_all();
  node_.announce_retired();
}

void Journal::seal(const RecordId& id) {
  const RecordView record = view(id);
  if (record.header->sealed != 0) return;
  record.header->payload_hash.store(XXH3_64bits(record.payload, record.header->payload_bytes),
                                    std::memory_order_relaxed);
  record.header->sealed = 1;
}

void Journal::wait_for_space(std::int64_t timeout_ns) {
  base::MutexLock lock(mutex_);
  ++space_waiters_;
  space_.wait_for(mutex_, std::chrono::nanoseconds(timeout_ns));
  --space_waiters_;
}

bool Journal::space_wanted() const {
  base::MutexLock lock(mutex_);
  return space_waiters_ > 0;
}

// --- what others can see ---

void Journal::publish(std::uint32_t file, const extent::Extent& bounds) {
  FilePending& pending = mapping_->pending(file);
  const std::uint32_t count = pending.count.load(std::memory_order_relaxed);
  if (count == 0) {
    node_.add_file_user(file);
    node_.header().pending_files.fetch_add(1, std::memory_order_release);
    pending.begin.store(bounds.offset, std::memory_order_relaxed);
    pending.end.store(bounds.end(), std::memory_order_relaxed);
  } else {
    pending.begin.store(std::min(bounds.offset, pending.begin.load(std::memory_order_relaxed)),
                        std::memory_order_relaxed);
    pending.end.store(std::max(bounds.end(), pending.end.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  }
  node_.file(file).pending_records.fetch_add(1, std::memory_order_release);
  pending.count.store(count + 1, std::memory_order_release);
}

void Journal::unpublish(std::uint32_t file) {
  FilePending& pending = mapping_->pending(file);
  const std::uint32_t count = pending.count.load(std::memory_order_relaxed) - 1;
  pending.count.store(count, std::memory_order_release);
  node_.file(file).pending_records.fetch_sub(1, std::memory_order_release);
  if (count > 0) return;
  node_.header().pending_files.fetch_sub(1, std::memory_order_relaxed);
  node_.release_file(file);
}

std::vector<Journal::Piece> Journal::find(std::uint32_t file, const extent::Extent& range) {
  std::vector<Piece> pieces;
  base::MutexLock lock(mutex_);
  const auto found = index_.find(file);
  if (found == index_.end()) return pieces;
  found->second.for_each(range, [&](const Index::Entry& entry) {
    pieces.push_back({entry.extent, view(entry.value.id).payload + entry.value.payload, entry.value.id});
  });
  return pieces;
}

std::vector<RecordId> Journal::filling(std::uint32_t file) {
  std::vector<RecordId> ids;
  base::MutexLock lock(mutex_);
  for (const auto& [slot, id] : filling_) {
    if (slot == file) ids.push_back(id);
  }
  return ids;
}

}  // namespace spillway::journal
