// The journal's segments: where they come from, who may take them, and when they come back.
#include <algorithm>
#include <utility>

#include "journal/journal.h"

namespace spillway::journal {
namespace {

// Taken ahead of the first write; more as more turns out to be used.
constexpr std::int64_t kPrefaultedBytesMin = 64 << 20;

}  // namespace

std::uint32_t Journal::segments_allowed() const {
  if (limit_ <= 0) return 0;
  const std::int64_t most = static_cast<std::int64_t>(segments_.size()) - scratch_allowed();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(limit_ / options_.segment_payload_bytes, 1, most));
}

std::uint32_t Journal::scratch_allowed() const {
  return static_cast<std::uint32_t>((options_.scratch_bytes + options_.segment_payload_bytes - 1) /
                                    options_.segment_payload_bytes);
}

bool Journal::hold(std::int64_t bytes, Hold& hold) {
  std::uint32_t fresh = kNone;
  for (;;) {
    {
      base::MutexLock lock(mutex_);
      if (limit_ <= 0) return false;
      const std::int64_t segment_bytes = std::min(limit_, options_.segment_payload_bytes);
      const auto needed = static_cast<std::uint64_t>((bytes + segment_bytes - 1) / segment_bytes);
      reclaim_limbo(false);
      // One is left to those who do not hold: they must not have to wait for the holder, who may be waiting for them.
      if (in_use_ + held_ + needed + 1 > segments_allowed()) return false;
      if (free_.size() >= held_ + needed + 1 + spared_for_scratch()) {
        hold.segments = static_cast<std::uint32_t>(needed);
        held_ += hold.segments;
        return true;
      }
      fresh = fresh_segment(false);
      if (fresh == kNone) return false;
      ++populating_;
    }
    // Filling pages and entering them in the page table are left to whoever places the bytes, and to the background.
    Status status = mapping_->mapping().reserve(mapping_->segment_offset(fresh), mapping_->header().segment_bytes);
    base::MutexLock lock(mutex_);
    --populating_;
    if (!status) {
      untouched_.push_back(fresh);
      return false;
    }
    segments_[fresh].cold = true;
    free_.insert(free_.begin(), fresh);
  }
}

void Journal::release(Hold& hold) {
  base::MutexLock lock(mutex_);
  held_ -= hold.segments;
  hold.segments = 0;
  trim_pool();
}

Status Journal::populate(std::uint32_t segment) {
  Status status = mapping_->mapping().populate(mapping_->segment_offset(segment), mapping_->header().segment_bytes);
  base::MutexLock lock(mutex_);
  --populating_;
  (status.ok() ? free_ : untouched_).push_back(segment);
  return status;
}

std::uint32_t Journal::fresh_segment(bool scratch) {
  const std::uint32_t in_use = scratch ? scratch_in_use_ : in_use_ + held_;
  const std::uint32_t allowed = scratch ? scratch_allowed() : segments_allowed();
  if (in_use + populating_ >= allowed || untouched_.empty()) return kNone;
  const std::uint32_t segment = untouched_.back();
  untouched_.pop_back();
  return segment;
}

std::size_t Journal::spared_for_scratch() const { return scratch_in_use_ == 0 ? 1 : 0; }

bool Journal::take_segment(const Append& what) {
  const bool scratch = what.file == kNone;
  std::uint32_t& in_use = scratch ? scratch_in_use_ : in_use_;
  if (what.hold != nullptr && what.hold->segments > 0) {
    --what.hold->segments;
    --held_;
  } else if (free_.size() <= held_ + (scratch ? 0 : spared_for_scratch()) ||
             (scratch ? in_use >= scratch_allowed() : in_use + held_ >= segments_allowed())) {
    return false;
  }
  const std::uint32_t segment = free_.back();
  free_.pop_back();
  ++in_use;
  if (!scratch) in_use_peak_ = std::max(in_use_peak_, in_use_);
  segments_[segment].scratch = scratch;
  segments_[segment].live_records = 0;
  SegmentDescriptor& descriptor = mapping_->segment(segment);
  descriptor.tail.store(0, std::memory_order_relaxed);
  descriptor.state.store(SegmentState::in_use, std::memory_order_release);
  std::uint32_t& current = scratch ? current_scratch_ : current_;
  // The previous one, if it has no live record any more, was given back when its last one ended.
  current = segment;
  return true;
}

void Journal::warm(const RecordId& id) {
  {
    base::MutexLock lock(mutex_);
    if (!std::exchange(segments_[id.segment].cold, false)) return;
  }
  mapping_->mapping().populate_existing(mapping_->segment_offset(id.segment), mapping_->header().segment_bytes);
}

bool Journal::prefault() {
  std::uint32_t segment = kNone;
  {
    base::MutexLock lock(mutex_);
    const auto at_least = static_cast<std::uint32_t>(kPrefaultedBytesMin / options_.segment_payload_bytes);
    const std::uint32_t wanted = std::min(segments_allowed(), std::max(at_least, 2 * in_use_peak_));
    if (in_use_ + free_.size() + populating_ >= wanted || untouched_.empty()) return false;
    segment = untouched_.back();
    untouched_.pop_back();
    ++populating_;
  }
  Status status = mapping_->mapping().populate(mapping_->segment_offset(segment), mapping_->header().segment_bytes);
  base::MutexLock lock(mutex_);
  --populating_;
  if (!status) {
    untouched_.push_back(segment);
    return false;
  }
  free_.insert(free_.begin(), segment);  // the ones already used are warmer
  trim_pool();
  return true;
}

// --- coming back ---

void Journal::give_back(std::uint32_t segment) {
  if (current_ == segment) current_ = kNone;
  if (current_scratch_ == segment) current_scratch_ = kNone;
  // Before the counters are read: a reader that comes later sees limbo and leaves the segment alone.
  mapping_->segment(segment).state.store(SegmentState::limbo, std::memory_order_seq_cst);
  Segment& entry = segments_[segment];
  entry.readers.clear();
  for (std::uint32_t i = 0; i < node_.process_count(); ++i) {
    for (std::uint32_t role = 0; role < 2; ++role) {
      const std::uint32_t reading = node_.process(i).reading[role].load(std::memory_order_seq_cst);
      if ((reading & 1) != 0) entry.readers.push_back({i, role, reading});
    }
  }
  limbo_.push_back(segment);
  reclaim_limbo(false);
}

bool Journal::still_read(const Segment& segment, bool check_alive) const {
  return std::any_of(segment.readers.begin(), segment.readers.end(), [&](const Segment::Reader& reader) {
    if (node_.process(reader.process).reading[reader.role].load(std::memory_order_seq_cst) != reader.count)
      return false;
    return !check_alive || node_.alive(reader.process);
  });
}

void Journal::reclaim_limbo(bool check_alive) {
  for (std::size_t i = 0; i < limbo_.size();) {
    const std::uint32_t segment = limbo_[i];
    if (still_read(segments_[segment], check_alive)) {
      ++i;
      continue;
    }
    limbo_.erase(limbo_.begin() + static_cast<std::ptrdiff_t>(i));
    mapping_->segment(segment).state.store(SegmentState::free, std::memory_order_release);
    --(segments_[segment].scratch ? scratch_in_use_ : in_use_);
    free_.push_back(segment);
  }
  trim_pool();
}

void Journal::trim_pool() {
  const std::size_t keep = std::max<std::size_t>(segments_allowed() + scratch_allowed(), kReservedSegments);
  while (free_.size() > held_ && free_.size() + in_use_ + scratch_in_use_ > keep) {
    const std::uint32_t segment = free_.front();
    free_.erase(free_.begin());
    mapping_->mapping().discard(mapping_->segment_offset(segment), mapping_->header().segment_bytes);
    segments_[segment].cold = false;
    untouched_.push_back(segment);
  }
}

}  // namespace spillway::journal
