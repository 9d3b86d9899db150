#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "collective/collective_io.h"

// For tests only: a file, the shared memory of pretended nodes, and landings and local I/O over them, in plain vectors. Bytes that a
// staging node holds pending are seen by its own ranks alone, as in the real thing.
namespace spillway::collective {

// Fails once, at the call with this number (from 1 on); 0: never.
struct Fault {
  int call = 0;
  Code code = Code::io;
  int calls = 0;
  Status next(const char* what) {
    if (++calls != call) return {};
    return Status(code, what).at_offset(4711);
  }
};

class MemoryFile {
 public:
  void write(std::int64_t offset, std::span<const std::byte> from) {
    base::MutexLock lock(mutex_);
    const auto begin = static_cast<std::size_t>(offset);
    if (bytes_.size() < begin + from.size()) bytes_.resize(begin + from.size());
    std::memcpy(bytes_.data() + begin, from.data(), from.size());
  }
  [[nodiscard]] std::vector<std::byte> content() const {
    base::MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  mutable base::Mutex mutex_;
  std::vector<std::byte> bytes_ SPILLWAY_GUARDED_BY(mutex_);
};

// What the ranks of one node share.
class MemoryNode {
 public:
  struct Segment {
    extent::ExtentList runs;
    std::vector<std::byte> bytes;
  };
  struct Write {
    int owner;
    std::int64_t offset;
    std::vector<std::byte> bytes;
  };

  Segment* add(int owner, std::uint32_t number, Segment segment) {
    base::MutexLock lock(mutex_);
    auto& place = segments_[{owner, number}];
    EXPECT_EQ(place, nullptr);
    place = std::make_unique<Segment>(std::move(segment));
    return place.get();
  }
  // Null when the owner has taken it back, which it must not while others are at it.
  Segment* find(int owner, std::uint32_t number) {
    base::MutexLock lock(mutex_);
    const auto found = segments_.find({owner, number});
    return found == segments_.end() ? nullptr : found->second.get();
  }
  void drop(int owner, std::uint32_t number) {
    base::MutexLock lock(mutex_);
    segments_.erase({owner, number});
  }
  [[nodiscard]] bool empty() const {
    base::MutexLock lock(mutex_);
    return segments_.empty();
  }

  void stage(Write write) {
    base::MutexLock lock(mutex_);
    pending_.push_back(std::move(write));
  }
  [[nodiscard]] std::vector<Write> pending() const {
    base::MutexLock lock(mutex_);
    return pending_;
  }
  // Moves what `owner` has pending into the file, and all that is older.
  void flush(int owner, MemoryFile& file) {
    base::MutexLock lock(mutex_);
    std::size_t count = 0;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      if (pending_[i].owner == owner) count = i + 1;
    }
    for (std::size_t i = 0; i < count; ++i) file.write(pending_[i].offset, pending_[i].bytes);
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(count));
  }

 private:
  mutable base::Mutex mutex_;
  std::map<std::pair<int, std::uint32_t>, std::unique_ptr<Segment>> segments_ SPILLWAY_GUARDED_BY(mutex_);
  std::vector<Write> pending_ SPILLWAY_GUARDED_BY(mutex_);
};

// The file as the ranks of a node see it.
inline std::vector<std::byte> seen_from(const MemoryFile& file, const MemoryNode& node) {
  std::vector<std::byte> bytes = file.content();
  for (const MemoryNode::Write& write : node.pending()) {
    const auto begin = static_cast<std::size_t>(write.offset);
    bytes.resize(std::max(bytes.size(), begin + write.bytes.size()));
    std::memcpy(bytes.data() + begin, write.bytes.data(), write.bytes.size());
  }
  return bytes;
}

struct MemoryPlace {
  MemoryFile& file;
  MemoryNode& node;
  int rank = 0;
  bool staging = false;

  void write(std::int64_t offset, std::span<const std::byte> bytes) const {
    if (staging) {
      node.stage({rank, offset, {bytes.begin(), bytes.end()}});
    } else {
      file.write(offset, bytes);
    }
  }
};

// The pieces of one round of an aggregator.
class MemoryRound {
 public:
  MemoryRound(const MemoryPlace& place, std::int64_t round_bytes, std::int64_t piece_bytes)
      : place_(place), round_bytes_(round_bytes), piece_bytes_(piece_bytes) {}
  ~MemoryRound() { EXPECT_TRUE(numbers_.empty()) << "a round was neither finished nor given up"; }
  // One more piece with what the cursor has left; false when the round is full.
  MemoryNode::Segment* take(extent::RunCursor& cursor, std::vector<LandingRef>& refs) {
    if (cursor.at_end() || used_ >= round_bytes_ || refs.size() == WriteLanding::kRefsMax) return nullptr;
    MemoryNode::Segment segment;
    std::int64_t left = std::min(piece_bytes_, round_bytes_ - used_);
    while (left > 0 && !cursor.at_end()) {
      const extent::Extent run{cursor.current().offset, std::min(cursor.current().length, left)};
      segment.runs.append(run);
      cursor.advance(run.length);
      left -= run.length;
      used_ += run.length;
    }
    segment.bytes.resize(static_cast<std::size_t>(segment.runs.bytes()), std::byte{0xee});
    const extent::Extent bounds = segment.runs.bounds();
    numbers_.push_back(++next_);
    refs.push_back({static_cast<std::uint32_t>(place_.rank), next_, 0, bounds});
    return place_.node.add(place_.rank, next_, std::move(segment));
  }
  template <typename Visit>
  void end(Visit&& visit) {
    for (const std::uint32_t number : numbers_) {
      visit(*place_.node.find(place_.rank, number));
      place_.node.drop(place_.rank, number);
    }
    numbers_.clear();
    used_ = 0;
  }
  [[nodiscard]] bool open() const { return !numbers_.empty(); }
  LandingView resolve(const LandingRef& ref) {
    MemoryNode::Segment* segment = place_.node.find(static_cast<int>(ref.owner), ref.segment);
    if (segment == nullptr) {
      ADD_FAILURE() << "the piece is not there (any more)";
      std::abort();
    }
    return {{&segment->runs[0], segment->runs.size()}, segment->bytes.data()};
  }

 private:
  const MemoryPlace& place_;
  std::int64_t round_bytes_;
  std::int64_t piece_bytes_;
  std::int64_t used_ = 0;
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> numbers_;
};

class MemoryWriteLanding final : public WriteLanding {
 public:
  MemoryWriteLanding(const MemoryPlace& place, std::int64_t round_bytes, std::int64_t piece_bytes)
      : place_(place), round_(place, round_bytes, piece_bytes) {}
  Fault accept_fault;
  Fault finish_fault;

  Status accept(extent::RunCursor& cursor, std::vector<LandingRef>& refs) override {
    EXPECT_FALSE(round_.open());
    while (round_.take(cursor, refs) != nullptr) continue;
    EXPECT_FALSE(refs.empty());
    return accept_fault.next("accept");  // with the pieces taken: they must be given back
  }
  LandingView resolve(const LandingRef& ref, std::int64_t) override { return round_.resolve(ref); }
  Status finish(bool keep) override {
    EXPECT_TRUE(round_.open());
    const Status status = keep ? finish_fault.next("finish") : Status();
    round_.end([&](const MemoryNode::Segment& segment) {
      const std::byte* bytes = segment.bytes.data();
      for (const extent::Extent& run : segment.runs) {
        if (keep && status.ok()) place_.write(run.offset, {bytes, static_cast<std::size_t>(run.length)});
        bytes += run.length;
      }
    });
    return status;
  }
  [[nodiscard]] bool finish_may_fail() const override { return !place_.staging; }

 private:
  const MemoryPlace& place_;
  MemoryRound round_;
};

class MemoryReadLanding final : public ReadLanding {
 public:
  MemoryReadLanding(const MemoryPlace& place, std::int64_t round_bytes, std::int64_t piece_bytes)
      : place_(place), round_(place, round_bytes, piece_bytes) {}
  Fault fault;

  Status fetch(extent::RunCursor& cursor, std::vector<LandingRef>& refs) override {
    const std::vector<std::byte> file = seen_from(place_.file, place_.node);
    while (MemoryNode::Segment* segment = round_.take(cursor, refs)) {
      std::byte* into = segment->bytes.data();
      for (const extent::Extent& run : segment->runs) {
        for (std::int64_t at = run.offset; at < run.end(); ++at) {
          *into++ = at < static_cast<std::int64_t>(file.size()) ? file[static_cast<std::size_t>(at)] : std::byte{0};
        }
      }
    }
    return fault.next("fetch");
  }
  LandingView resolve(const LandingRef& ref, std::int64_t) override { return round_.resolve(ref); }
  void release() override {
    EXPECT_TRUE(round_.open());
    round_.end([](const MemoryNode::Segment&) {});
  }

 private:
  const MemoryPlace& place_;
  MemoryRound round_;
};

}  // namespace spillway::collective
