#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/mapping.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/summary.h"
#include "journal/layout.h"

namespace spillway::journal {

// <shm_dir>/spillway-<uid>/<job>. Only its owner may enter.
std::string job_directory(const std::string& shm_dir, const std::string& job);

struct FileKey {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t birth_ns = 0;  // for recovery, which comes after the inode may have been reused; 0: not known
};

// One process's journal file as every process of the node sees it.
class JournalMapping {
 public:
  explicit JournalMapping(base::Mapping mapping) : mapping_(std::move(mapping)) {}

  [[nodiscard]] base::Mapping& mapping() { return mapping_; }
  [[nodiscard]] const JournalHeader& header() const { return *reinterpret_cast<const JournalHeader*>(mapping_.data()); }
  [[nodiscard]] FilePending& pending(std::uint32_t file) const {
    return reinterpret_cast<FilePending*>(mapping_.data() + header().pending_offset)[file];
  }
  [[nodiscard]] SegmentDescriptor& segment(std::uint32_t i) const {
    return reinterpret_cast<SegmentDescriptor*>(mapping_.data() + header().segments_offset)[i];
  }
  [[nodiscard]] std::size_t segment_offset(std::uint32_t i) const {
    return header().data_offset + i * header().segment_bytes;
  }
  [[nodiscard]] std::byte* segment_data(std::uint32_t i) const { return mapping_.data() + segment_offset(i); }

  // Enters the pages of a segment that its owner already has into this process's page table, once.
  void populate_once(std::uint32_t segment);

 private:
  base::Mapping mapping_;
  base::Mutex mutex_;
  std::vector<bool> populated_ SPILLWAY_GUARDED_BY(mutex_);
};

// The node's shared tables: its processes, the files that are open or pending, and an arena for small shared blocks. Created by the
// first process of the job on the node, removed by the last that leaves in order. One object per process (in tests: per pretended
// node, shared by its ranks).
//
// Threads: any.  Blocks: briefly, on the node's lock.
class Node {
 public:
  // `shm_dir` must exist.  Fails: access_denied, no_space, corrupt (another version's files), from the system.
  static Result<std::unique_ptr<Node>> attach(const std::string& shm_dir, const std::string& job);
  // A job's directory as it was left behind, for looking and recovery: nothing is created. Holds the job's lock while it lives, so that
  // nobody joins the job, or recovers it, at the same time.  Fails: no_such_file, file_in_use, corrupt.
  static Result<std::unique_ptr<Node>> open_left_behind(const std::string& directory);
  ~Node() {
    if (leaves_) leave();
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // The last one out removes what nothing pending needs. The memory stays mapped.
  void leave();

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] NodeHeader& header() const { return *reinterpret_cast<NodeHeader*>(mapping_.data()); }

  // --- processes ---
  // Takes a place in the process table.  Fails: no_space (kProcessesMax).
  Result<std::uint32_t> add_process(int rank);
  // Makes the journal known; from now on others may look into it.
  void publish_journal(std::uint32_t process, std::shared_ptr<JournalMapping> journal);
  // Adds what a process did; the last one gets the sum for the node. Once for each process.
  std::optional<base::RunSummary> add_to_totals(std::uint32_t process, const base::RunSummary& part);
  // It got no journal and has nothing to add.
  void forget_process(std::uint32_t process);
  // The process leaves; its journal file is removed unless it still holds something.
  void remove_process(std::uint32_t process, bool keep_journal);
  [[nodiscard]] std::string journal_path(std::uint32_t process) const;
  [[nodiscard]] std::uint32_t process_count() const;
  [[nodiscard]] ProcessEntry& process(std::uint32_t i) const;
  // The journal of a process that published one; null for others, and where its header does not check.
  std::shared_ptr<JournalMapping> journal(std::uint32_t process);
  // False when the process is known to have died without leaving.
  [[nodiscard]] bool alive(std::uint32_t process) const;
  // Its journal is there: it lives, died, or left bytes behind.
  [[nodiscard]] bool has_journal(std::uint32_t process) const;
  // A process died with bytes of this file: they stay pending until recovery, so that waiting for them is in vain.
  [[nodiscard]] bool has_dead_owner(std::uint32_t slot);

  // --- files ---
  // Finds or makes the slot of a file and counts one more user of it.  Fails: no_memory (kFilesMax files open or pending at once, or
  // shared memory is full).
  Result<std::uint32_t> acquire_file(const FileKey& key, const std::string& path);
  // The slot of a file somebody has open or pending; nothing is counted.
  std::optional<std::uint32_t> find_file(const FileKey& key);
  void add_file_user(std::uint32_t slot);
  // The slot is given back with its last user; every pending record is a user.
  void release_file(std::uint32_t slot);
  [[nodiscard]] FileSlot& file(std::uint32_t slot) const;
  [[nodiscard]] bool file_in_use(std::uint32_t slot) const;
  // Where recovery will look for the file.
  [[nodiscard]] std::string file_path(std::uint32_t slot) const;
  void set_file_path(std::uint32_t slot, const std::string& path);

  // --- small shared blocks ---
  // Zeroed, 64-byte aligned.  Fails: no_space.
  Result<std::uint64_t> allocate_block(std::size_t bytes);
  void free_block(std::uint64_t offset, std::size_t bytes);
  // Whether 32 bits at this offset can belong to a block.
  [[nodiscard]] bool has_word(std::uint64_t offset) const;
  [[nodiscard]] void* block(std::uint64_t offset) const { return mapping_.data() + offset; }

  // Wakes those who wait for records to be retired, and waits for that: returns after a change since `seen`, or after timeout_ns.
  void announce_retired();
  [[nodiscard]] std::uint32_t retired_event() const;
  void wait_retired(std::uint32_t seen, std::int64_t timeout_ns);

 private:
  Node() = default;
  class Locked;
  Status map_tables(bool create);
  void remove_files() const;
  [[nodiscard]] std::uint32_t bucket_of(const FileKey& key) const;
  [[nodiscard]] std::uint32_t find_locked(const FileKey& key) const;
  void store_path(std::uint32_t slot, const std::string& path);

  std::string directory_;
  base::UniqueFd lock_fd_;  // the file `lock`: held while processes come and go
  bool leaves_ = false;     // one of the job's own, not somebody who looks at what was left behind
  mutable base::Mapping mapping_;
  mutable base::Mutex mutex_;
  std::vector<std::shared_ptr<JournalMapping>> journals_ SPILLWAY_GUARDED_BY(mutex_);
  std::set<std::uint32_t> own_ SPILLWAY_GUARDED_BY(mutex_);  // processes that this object added
};

// While one exists in a process, segments that the process might be reading are not recycled by their owners. Held for the time
// of a lookup and its copy.
// Threads: one section per process and role at a time (the caller sees to that).
enum class ReaderRole { application = 0, background = 1 };
class ReadSection {
 public:
  ReadSection(Node& node, std::uint32_t process, ReaderRole role)
      : counter_(node.process(process).reading[static_cast<int>(role)]) {
    counter_.fetch_add(1, std::memory_order_seq_cst);
  }
  ~ReadSection() { counter_.fetch_add(1, std::memory_order_seq_cst); }
  ReadSection(const ReadSection&) = delete;
  ReadSection& operator=(const ReadSection&) = delete;

 private:
  std::atomic<std::uint32_t>& counter_;
};

}  // namespace spillway::journal
