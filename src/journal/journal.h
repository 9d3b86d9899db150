#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"
#include "extent/extent.h"
#include "extent/interval_index.h"
#include "journal/journal_file.h"
#include "journal/node.h"

namespace spillway::journal {

// Where a record lies in its owner's journal.
struct RecordId {
  std::uint32_t segment = kNone;
  std::uint32_t reserved = 0;
  std::uint64_t offset = 0;  // in the segment
  friend bool operator==(const RecordId&, const RecordId&) = default;
};

// What makes a record valid: its owner says so, or a commit of a team is through (docs/adr/0001).
struct CommitRule {
  CommitKind kind = CommitKind::by_owner;
  std::uint64_t team_offset = 0;
  std::uint32_t number = 0;
};

// A record as its bytes lie in memory.
struct RecordView {
  RecordHeader* header = nullptr;
  std::span<const extent::Extent> runs;
  std::byte* payload = nullptr;

  [[nodiscard]] extent::Extent bounds() const { return {runs.front().offset, runs.back().end() - runs.front().offset}; }
};

// The memory medium of one process (docs/adr/0001): a file on /dev/shm cut into segments, into which the owner appends records
// and into which every rank of the node may place bytes. Written by one process, read by all; what is in it survives the process.
//
// A record lives: append (filling) -> bytes are placed -> commit -> [drained] -> retire; or abandon. Committed records are never
// changed. A segment is recycled when all its records are retired and nobody can be reading them.
//
// The limit bounds the segments in use and kept for reuse; it may change at any time. When it is reached append() answers
// would_block: the caller waits with wait_for_space() and retries. It holds nothing meanwhile that the drain needs.
//
// Threads: any.  Blocks: append() for the time the system takes to hand out new pages; wait_for_space().
class Journal {
 public:
  static Result<std::unique_ptr<Journal>> create(Node& node, const JournalOptions& options);
  // Leaves the node. What was not retired stays behind for recovery.
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  [[nodiscard]] Node& node() { return node_; }
  [[nodiscard]] std::uint32_t process() const { return process_; }

  // The available buffer size (ABT §3.2), in payload bytes. Shrinking takes effect as segments come back.
  void set_limit(std::int64_t bytes);
  [[nodiscard]] std::int64_t limit() const;
  // Payload bytes that append() would accept now without waiting, at least; one large record's worth is assumed.
  [[nodiscard]] std::int64_t free_bytes();
  // Payload bytes of records that are not retired.
  [[nodiscard]] std::int64_t pending_bytes() const;

  // Segments set aside for appends that must not wait or fail any more. Its holder's own. Their pages exist, but those that were
  // never used before may not be in the page table: cold.
  struct Hold {
    std::uint32_t segments = 0;
  };
  // Sets aside room for `bytes` of payload of one run of a file, and leaves some for others. False, and nothing is held, when that
  // much is not free now.
  [[nodiscard]] bool hold(std::int64_t bytes, Hold& hold);
  void release(Hold& hold);

  struct Append {
    std::uint32_t file = kNone;  // kNone: scratch
    CommitRule commit;
    std::int64_t bytes_max = 0;  // of payload; what fits may be less
    Hold* hold = nullptr;        // what to draw on
  };
  struct Appended {
    RecordId id;
    RecordView view;
    bool cold = false;  // the payload's pages: place() is faster than storing into them
  };
  // Takes a leading part of what `cursor` has left into a new record and moves the cursor past it.
  // The record counts as pending from now on, so that no reader can miss it once it is valid.
  // Fails: would_block when full, also when shared memory itself is.
  Result<Appended> append(extent::RunCursor& cursor, const Append& what);

  // Puts bytes into the payload from `offset` on, without going through the page table.
  void place(const Appended& record, std::uint64_t offset, std::span<const std::byte> bytes);
  // Enters the pages of the record's segment in the page table. For background threads, before they read a payload.
  void warm(const RecordId& id);

  // The bytes are in place. For by_team records: call it after the commit; the record became valid with it.
  void commit(const RecordId& id);
  // The bytes are not coming, or are not wanted any more.
  void abandon(const RecordId& id);
  // The bytes are in the file.
  void retire(const RecordId& id);
  // Writes the payload's checksum into the header, unless it is there.
  void seal(const RecordId& id);

  [[nodiscard]] RecordView view(const RecordId& id) const;

  // Waits until space may have come back, at most timeout_ns.
  void wait_for_space(std::int64_t timeout_ns);
  // Somebody is waiting for it.
  [[nodiscard]] bool space_wanted() const;

  // Takes one more segment's pages ahead of need, if that seems useful. True if it did something. For idle background threads.
  bool prefault();

  // The owner's own committed records of `file` inside `range`, newest only, in file order: which file bytes lie where.
  struct Piece {
    extent::Extent extent;
    const std::byte* bytes;
    RecordId id;
  };
  std::vector<Piece> find(std::uint32_t file, const extent::Extent& range);
  // Records that are filling under a team's commit and may be valid already; the index does not know them yet.
  std::vector<RecordId> filling(std::uint32_t file);

  // The team's commit is through, or the owner has committed: the record's bytes count.
  [[nodiscard]] static bool valid(const Node& node, const RecordHeader& header);

 private:
  struct Position {  // where in the journal a file range's bytes begin
    RecordId id;
    std::uint64_t payload = 0;  // offset in the record's payload
  };
  struct ShiftPosition {
    Position operator()(const Position& position, std::int64_t bytes) const {
      return {position.id, position.payload + static_cast<std::uint64_t>(bytes)};
    }
  };
  using Index = extent::IntervalIndex<Position, ShiftPosition>;
  // Owner's private knowledge of a segment.
  struct Segment {
    bool scratch = false;
    bool cold = false;
    std::uint32_t live_records = 0;
    struct Reader {  // in limbo: who was reading, at which count
      std::uint32_t process;
      std::uint32_t role;
      std::uint32_t count;
    };
    std::vector<Reader> readers;
  };
  struct Layout {  // how a record would lie in a segment
    std::uint64_t payload_offset = 0;
    std::uint64_t payload_bytes = 0;
    std::uint64_t record_bytes = 0;
    std::uint32_t run_count = 0;
  };

  Journal(Node& node, const JournalOptions& options) : node_(node), options_(options) {}
  [[nodiscard]] std::uint64_t tail(std::uint32_t segment) const;
  // What of the cursor's runs fits behind `tail`; payload_bytes 0 when it is not worth it.
  [[nodiscard]] Layout fit(const extent::RunCursor& cursor, std::int64_t bytes_max, std::uint32_t segment) const
      SPILLWAY_REQUIRES(mutex_);
  [[nodiscard]] std::optional<Appended> try_append(extent::RunCursor& cursor, const Append& what)
      SPILLWAY_REQUIRES(mutex_);
  Appended lay_out(extent::RunCursor& cursor, const Append& what, std::uint32_t segment, const Layout& layout)
      SPILLWAY_REQUIRES(mutex_);
  [[nodiscard]] bool take_segment(const Append& what) SPILLWAY_REQUIRES(mutex_);
  // A segment whose pages are to be taken next, when the limits allow one more; kNone otherwise.
  [[nodiscard]] std::uint32_t fresh_segment(bool scratch) SPILLWAY_REQUIRES(mutex_);
  // Takes the pages of a segment that is counted in populating_, and ends that.
  Status populate(std::uint32_t segment) SPILLWAY_EXCLUDES(mutex_);
  void finish(const RecordId& id, RecordState state);
  void give_back(std::uint32_t segment) SPILLWAY_REQUIRES(mutex_);
  void reclaim_limbo(bool check_alive) SPILLWAY_REQUIRES(mutex_);
  [[nodiscard]] bool still_read(const Segment& segment, bool check_alive) const;
  void trim_pool() SPILLWAY_REQUIRES(mutex_);
  void forget_filling(const RecordId& id) SPILLWAY_REQUIRES(mutex_);
  [[nodiscard]] std::uint32_t segments_allowed() const SPILLWAY_REQUIRES(mutex_);
  [[nodiscard]] std::uint32_t scratch_allowed() const;
  // The last free segment is for scratch, which must not wait for records that may be stuck behind a failure.
  [[nodiscard]] std::size_t spared_for_scratch() const SPILLWAY_REQUIRES(mutex_);
  void publish(std::uint32_t file, const extent::Extent& bounds) SPILLWAY_REQUIRES(mutex_);
  void unpublish(std::uint32_t file) SPILLWAY_REQUIRES(mutex_);

  Node& node_;
  const JournalOptions options_;
  std::uint32_t process_ = 0;
  std::shared_ptr<JournalMapping> mapping_;

  mutable base::Mutex mutex_;
  base::CondVar space_;
  std::int64_t limit_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::vector<Segment> segments_ SPILLWAY_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> free_ SPILLWAY_GUARDED_BY(mutex_);  // populated ones, most recently used last
  std::vector<std::uint32_t> limbo_ SPILLWAY_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> untouched_ SPILLWAY_GUARDED_BY(mutex_);  // without pages, lowest last
  std::uint32_t populating_ SPILLWAY_GUARDED_BY(mutex_) = 0;          // pages being taken outside the lock
  std::uint32_t in_use_ SPILLWAY_GUARDED_BY(mutex_) = 0;              // journal segments, those in limbo included
  std::uint32_t in_use_peak_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::uint32_t held_ SPILLWAY_GUARDED_BY(mutex_) = 0;  // of free_, by all holders
  std::uint32_t scratch_in_use_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::uint32_t current_ SPILLWAY_GUARDED_BY(mutex_) = kNone;
  std::uint32_t current_scratch_ SPILLWAY_GUARDED_BY(mutex_) = kNone;
  std::int64_t pending_bytes_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  int space_waiters_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::uint32_t, Index> index_ SPILLWAY_GUARDED_BY(mutex_);
  std::vector<std::pair<std::uint32_t, RecordId>> filling_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::journal
