#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/process_mutex.h"
#include "base/units.h"
#include "extent/extent.h"

// What lies in shared memory, byte by byte; docs/formats/journal-memory.md describes it for other readers. Two kinds of file in
// the job's directory: `node`, one for the node, and `journal.N`, one for each process, written by that process (its *owner*) and
// mapped by all. Everything is host byte order and naturally aligned; a version change changes kVersion.
namespace spillway::journal {

inline constexpr std::uint64_t kNodeMagic = 0x31444f4e4c495053;     // "SPILNOD1"
inline constexpr std::uint64_t kJournalMagic = 0x314e524a4c495053;  // "SPILJRN1"
inline constexpr std::uint32_t kRecordMagic = 0x43455253;           // "SREC"
inline constexpr std::uint32_t kVersion = 2;

inline constexpr std::uint32_t kProcessesMax = 1024;
inline constexpr std::uint32_t kFilesMax = 16384;
inline constexpr std::uint32_t kFileBuckets = 4096;
inline constexpr std::size_t kPathBytesMax = 4096;
inline constexpr std::size_t kArenaBytes = std::size_t{4} << 30;  // address space; memory only where touched
inline constexpr std::uint32_t kNone = 0xffffffff;

struct ProcessEntry {
  std::atomic<std::uint32_t> live;  // set once the journal can be mapped; cleared when the process left in order
  std::uint32_t pid;
  std::int32_t rank;
  std::uint32_t counted;  // its part of the summary is in NodeHeader::totals; guarded by mutex
  // Even: not reading journals. Odd: inside a ReadSection, so that what it may look at is not recycled. One for the
  // application's threads (one section at a time), one for the background thread. Sequentially consistent, against Journal's move
  // of a segment to limbo.
  std::atomic<std::uint32_t> reading[2];
};

// The last background failure of a file.
struct alignas(8) PackedError {  // so that every compiler reads it in one piece
  std::uint16_t code;
  std::uint16_t errno_value;
  std::uint32_t epoch;  // counts failures of this file; 0: none ever
};
static_assert(sizeof(PackedError) == 8);

// What the node knows about one file, by device and inode. Fields without a comment are guarded by NodeHeader::mutex.
struct FileSlot {
  std::uint32_t used;
  std::uint32_t next_in_bucket;
  std::uint64_t device;
  std::uint64_t inode;
  std::int64_t birth_ns;  // when the file was made; 0: the file system does not tell
  std::uint32_t open_count;
  std::atomic<std::uint32_t> stuck_owners;   // processes that hold records which could not be written; relaxed count
  std::atomic<std::uint64_t> next_sequence;  // taken by every record: order of completion
  std::atomic<std::uint32_t>
      pending_records;  // on this node, not yet in the file; relaxed count, see FilePending for order
  std::atomic<std::uint32_t>
      spans_nodes;  // opened by ranks of several nodes: others may hold bytes that nobody here sees
  std::atomic<PackedError> error;
};

// What the processes that have left did, added up; guarded by NodeHeader::mutex. Fields as in base::RunSummary.
struct NodeTotals {
  std::int64_t processes;
  std::int64_t bytes_written;
  std::int64_t bytes_read;
  std::int64_t bytes_staged;
  std::int64_t waited_ns;
  std::int64_t hidden_ns;
  std::int64_t drain_ns;
  std::int64_t errors;
  std::int64_t pending_bytes;
  char first_error[512];
};

struct NodeHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::atomic<std::uint32_t> processes;  // entries ever used; changed under mutex, release, for readers without it
  std::uint64_t nonce[2];                // two ranks that read the same one share this memory
  std::uint32_t files;                   // slots ever used; guarded by mutex
  std::uint32_t free_file;               // list of slots given back, by next_in_bucket; guarded by mutex
  std::uint64_t arena_next;              // guarded by mutex
  std::uint64_t arena_free[40];          // lists by size, powers of two; guarded by mutex
  base::ProcessMutex mutex;
  NodeTotals totals;
  // Moves on whenever records were retired somewhere on the node; futex for those who wait for that.
  alignas(64) std::atomic<std::uint32_t> retired_event;
  std::atomic<std::uint32_t> retired_waiters;
  // Processes inside an I/O call of the program: the drains hold back a moment for them. A hint only: relaxed, and wrong after a crash.
  std::atomic<std::uint32_t> calls_inside;
  // Pairs of process and file with something pending: zero is all that most callers ever look at. Release when raised.
  std::atomic<std::uint32_t> pending_files;
  alignas(64) std::uint32_t file_bucket[kFileBuckets];  // guarded by mutex
};

// What one owner has pending for one file: lets others skip journals that hold nothing of interest. Written by the owner only: the
// hull before the count (release), so that whoever sees a count (acquire) sees a hull that covers it.
struct FilePending {
  std::atomic<std::uint32_t> count;
  std::uint32_t reserved;
  std::atomic<std::int64_t> begin;
  std::atomic<std::int64_t> end;
};

enum class SegmentState : std::uint32_t {
  free = 0,
  in_use = 1,
  limbo = 2
};  // limbo: retired, perhaps still being read

struct SegmentDescriptor {
  std::atomic<SegmentState> state;
  std::uint32_t reserved;
  // Bytes appended; a record counts once its header is complete. Release by the owner, acquire by readers.
  std::atomic<std::uint64_t> tail;
};

struct JournalHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t process;  // index in the node's table
  std::int32_t rank;
  std::uint32_t pid;
  std::uint64_t segment_bytes;
  std::uint32_t segment_count;
  std::uint32_t reserved;
  std::uint64_t pending_offset;   // FilePending[kFilesMax]
  std::uint64_t segments_offset;  // SegmentDescriptor[segment_count]
  std::uint64_t data_offset;      // segment i at data_offset + i * segment_bytes
};

enum class CommitKind : std::uint32_t { by_owner = 0, by_team = 1 };

enum class RecordState : std::uint32_t {
  filling = 1,    // bytes are being placed; valid already if by_team and that commit is through
  committed = 2,  // complete: recovery writes it
  retired = 3,    // in the file
  abandoned = 4,  // the operation failed, or the bytes were discarded
};

// A record: the bytes of one or more file ranges, packed in file order. Followed by run_count Extents, then, at payload_offset,
// the payload. Records stand one after the other in a segment, 64-byte aligned.
struct RecordHeader {
  std::uint32_t magic;
  std::uint32_t run_count;
  std::uint64_t record_bytes;  // from this header to the next
  std::uint64_t payload_offset;
  std::uint64_t payload_bytes;
  std::uint64_t sequence;
  std::uint32_t file;  // slot in the node file; kNone: scratch, never recovered
  CommitKind commit_kind;
  std::uint64_t team_offset;  // by_team: the word in the node file that counts the team's commits
  std::uint32_t commit_number;
  std::uint32_t reserved;
  std::uint64_t header_hash;  // XXH3 of everything above and of the runs
  // What changes later. state: release by whoever changes it, acquire by readers of the payload.
  std::atomic<RecordState> state;
  std::uint32_t sealed;  // payload_hash is valid; written before it is needed, by the owner's drain thread
  std::atomic<std::uint64_t> payload_hash;  // XXH3
  std::uint64_t padding[5];
};
static_assert(sizeof(RecordHeader) == 128);
static_assert(sizeof(extent::Extent) == 16);

inline constexpr std::uint64_t kRecordAlignment = 64;
inline constexpr std::uint64_t kPageBytes = 4096;
// Beside its payload a segment has room for the headers and run tables of a few records.
inline constexpr std::uint64_t kSegmentSlackBytes = 16 * 1024;

// The node file: NodeHeader, then these, each on a page of its own.
inline constexpr std::size_t kProcessesOffset = base::round_up(sizeof(NodeHeader), std::size_t{4096});
inline constexpr std::size_t kFilesOffset =
    base::round_up(kProcessesOffset + kProcessesMax * sizeof(ProcessEntry), std::size_t{4096});
inline constexpr std::size_t kPathsOffset =
    base::round_up(kFilesOffset + kFilesMax * sizeof(FileSlot), std::size_t{4096});
inline constexpr std::size_t kArenaOffset = kPathsOffset + kFilesMax * kPathBytesMax;
inline constexpr std::size_t kNodeBytes = kArenaOffset + kArenaBytes;

}  // namespace spillway::journal
