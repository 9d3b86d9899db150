#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/activity.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/trace.h"
#include "journal/journal.h"
#include "journal/pending.h"
#include "storage/backend.h"

namespace spillway::drain {

// A file that bytes are drained into. Outlives the program's handle while something is pending; closed by the marker that ends its
// part of the queue (ABT §3.3).
struct Target {
  std::uint32_t slot = 0;  // in the node's file table
  std::string path;
  std::unique_ptr<storage::File> file;
};

// Moves committed records of this process's journal into their files, oldest first, on the one background thread of the process
// (ABT §3.2). Neighbouring records go in one write. A record leaves the journal only once the backend has taken it, so a crash can
// repeat a write but cannot lose one. Records of other processes of the node that are older and overlap go first.
//
// A failure is latched in the node's file slot, where every rank of the node sees it; the records of that file stay in the journal,
// set aside, until retry() or another process drains them. Other files go on.
//
// Threads: start() and finish() by one thread; the rest by any.
// Blocks: wait() and finish().  Fails: wait() with the latched failure.
class Drain {
 public:
  struct Parts {
    journal::Node& node;
    journal::Journal& journal;
    journal::Pending& pending;
    base::Activity& activity;
    const base::Clock& clock;
    base::Trace* trace = nullptr;
  };
  explicit Drain(const Parts& parts) : parts_(parts) {}
  ~Drain();
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // Starts the thread: at the first managed open, never earlier. All signals are blocked in it.
  void start();
  // Waits until everything is drained or stuck behind a failure that a last retry did not clear; ends the thread. Bytes that remain
  // stay in the journal for recovery.
  void finish();

  // In any order; drained in that of the sequence numbers, as far as the thread has not begun.
  void submit(const journal::RecordId& id, std::shared_ptr<Target> target);
  void submit_close(std::shared_ptr<Target> target);

  // Waits until what has been submitted for the file so far is in it. `progress` is called now and then meanwhile.
  Status wait(std::uint32_t slot, const std::function<void()>& progress);
  // Tries again what is stuck for this file.
  void retry(std::uint32_t slot);
  // The file's pending records are no longer wanted (it is deleted, or cut off below them): drops those that lie at or above
  // `from`, of this process, and waits for a write in flight to end.
  void discard(std::uint32_t slot, std::int64_t from);
  // The failure behind which all records that fill the journal are stuck, so that waiting for space is in vain: that of `slot` if it
  // has one. Ok while some can still be drained.
  [[nodiscard]] Status all_stuck(std::uint32_t slot) const;

  // For tests: holds the thread before the next write, until resumed.
  void pause();
  void resume();

 private:
  struct Item {
    journal::RecordId id;  // segment kNone: close marker
    std::shared_ptr<Target> target;
    [[nodiscard]] bool is_close() const { return id.segment == journal::kNone; }
  };
  struct FileState {
    std::uint64_t submitted = 0;
    std::uint64_t done = 0;
    Status failure;          // why stuck is not empty
    std::deque<Item> stuck;  // in order
    std::int64_t retried_ns = 0;
    std::uint64_t newest_sequence = 0;  // of what was submitted
  };

  void run();
  bool take_batch(std::vector<Item>& batch) SPILLWAY_EXCLUDES(mutex_);
  [[nodiscard]] bool extends(const std::vector<Item>& batch, const Item& item, std::int64_t bytes) const;
  // May shorten the batch. Fails: as wait_for_older() and as the storage.
  Status write_batch(std::vector<Item>& batch);
  // Fails: would_block when an older record of the same file has been submitted meanwhile; nothing was written then.
  Status wait_for_older(const Item& item);
  [[nodiscard]] bool older_elsewhere(const Item& item) const;
  [[nodiscard]] std::uint64_t sequence(const Item& item) const;
  [[nodiscard]] std::deque<Item>::iterator place_for(const Item& item) SPILLWAY_REQUIRES(mutex_);
  [[nodiscard]] bool older_queued(const Item& item) const SPILLWAY_EXCLUDES(mutex_);
  // Returns what follows the first `kept` items to the queue, behind older records of the file that are there.
  void put_back(std::vector<Item>& batch, std::size_t kept) SPILLWAY_EXCLUDES(mutex_);
  [[nodiscard]] bool retried_lately(std::uint32_t slot) const;
  void complete(const std::vector<Item>& batch, const Status& status);
  void set_aside(FileState& state, std::uint32_t slot, const std::vector<Item>& batch, const Status& status)
      SPILLWAY_REQUIRES(mutex_);
  [[nodiscard]] bool busy_with(std::uint32_t slot) const SPILLWAY_REQUIRES(mutex_);
  // Checksums records that wait, for as long as is small beside what a write takes.
  void seal_some();
  [[nodiscard]] bool hold_back() SPILLWAY_REQUIRES(mutex_);
  void idle() SPILLWAY_EXCLUDES(mutex_);

  Parts parts_;
  std::thread thread_;
  mutable base::Mutex mutex_;
  base::CondVar work_;     // something to do, or stop
  base::CondVar changed_;  // something was done
  std::deque<Item> queue_ SPILLWAY_GUARDED_BY(mutex_);
  std::unordered_map<std::uint32_t, FileState> files_ SPILLWAY_GUARDED_BY(mutex_);
  std::size_t unsealed_ SPILLWAY_GUARDED_BY(mutex_) = 0;  // at the end of queue_
  std::vector<Item> in_flight_ SPILLWAY_GUARDED_BY(mutex_);
  int waiters_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::int64_t newest_ns_ SPILLWAY_GUARDED_BY(mutex_) = 0;  // when the last record was submitted
  std::int64_t last_write_ns_ = 0;                          // how long the last write took; the background thread's own
  bool stopping_ SPILLWAY_GUARDED_BY(mutex_) = false;
  bool paused_ SPILLWAY_GUARDED_BY(mutex_) = false;
};

}  // namespace spillway::drain
