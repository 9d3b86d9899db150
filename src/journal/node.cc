#include "journal/node.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/futex.h"
#include "base/units.h"
#include "journal/journal_file.h"
#include "journal/node_lock.h"

namespace spillway::journal {
namespace {

enum : std::uint32_t { kNotLive = 0, kLive = 1, kLeftJournal = 2 };

// The owner only: other users of the machine must not look into, or plant, a journal.
Status make_private_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Status::from_errno(errno, "creating").on_path(path);
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0) return Status::from_errno(errno, "stat").on_path(path);
  if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
    return Status(Code::access_denied, fmt::format("{} is not a directory that only this user can enter", path));
  }
  return {};
}

Result<base::UniqueFd> open_file(const std::string& path, int flags) {
  base::UniqueFd fd = base::above_stdio(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return Status::from_errno(errno, "open").on_path(path);
  return fd;
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The user's directory goes when no other job is in it.
void remove_directories(const std::string& directory) {
  rmdir(directory.c_str());
  rmdir(parent_of(directory).c_str());
}

// Opens and locks the job's lock file; makes sure that it is still the one that others see.
Result<base::UniqueFd> lock_job(const std::string& directory, int operation) {
  const std::string path = directory + "/lock";
  for (int attempts_left = 1000;; --attempts_left) {
    Status status = make_private_directory(parent_of(directory));
    if (status.ok()) status = make_private_directory(directory);
    Result<base::UniqueFd> fd = status.ok() ? open_file(path, O_RDWR | O_CREAT) : status;
    // Removed meanwhile by the last one that left, or there never was a place for it.
    if (!fd && fd.status().code() == Code::no_such_file && attempts_left > 0) continue;
    if (!fd) return fd;
    while (flock(fd->get(), operation) != 0) {
      if (errno != EINTR) return Status::from_errno(errno, "lock").on_path(path);
    }
    struct stat held {};
    struct stat named {};
    if (fstat(fd->get(), &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino) return fd;
  }
}

// How a node file begins.
struct TablesMark {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
};
static_assert(offsetof(NodeHeader, magic) == 0 && offsetof(NodeHeader, version) == offsetof(TablesMark, version));

// Not through a mapping: where the page is not there yet, and memory is full, that is a SIGBUS.
TablesMark read_mark(int fd) {
  TablesMark mark;
  return pread(fd, &mark, sizeof mark, 0) == sizeof mark ? mark : TablesMark();
}

// Whether somebody may be using the node file.
bool has_tables(const std::string& path) {
  const Result<base::UniqueFd> fd = open_file(path, O_RDONLY);
  return fd.ok() ? read_mark(fd.value().get()).magic != 0 : fd.status().code() != Code::no_such_file;
}

}  // namespace

std::string job_directory(const std::string& shm_dir, const std::string& job) {
  return fmt::format("{}/spillway-{}/{}", shm_dir, geteuid(), job);
}

void JournalMapping::populate_once(std::uint32_t segment) {
  {
    base::MutexLock lock(mutex_);
    if (populated_.empty()) populated_.resize(header().segment_count);
    if (populated_[segment]) return;
    populated_[segment] = true;
  }
  mapping_.populate_existing(segment_offset(segment), header().segment_bytes);
}

Result<std::unique_ptr<Node>> Node::attach(const std::string& shm_dir, const std::string& job) {
  std::unique_ptr<Node> node(new Node());
  node->directory_ = job_directory(shm_dir, job);
  const std::string tables = node->directory_ + "/node";
  for (;; node->lock_fd_.reset()) {
    // Shared until the process has its journal: nobody takes the job for abandoned meanwhile.
    Result<base::UniqueFd> lock = lock_job(node->directory_, LOCK_SH);
    if (!lock) {
      remove_directories(node->directory_);  // which keeps what others have in them
      return lock.status();
    }
    node->lock_fd_ = std::move(lock).value();
    if (has_tables(tables)) {
      if (Status status = node->map_tables(false); !status) return status;
      node->leaves_ = true;
      return node;
    }
    node->lock_fd_.reset();
    lock = lock_job(node->directory_, LOCK_EX);
    if (!lock) {
      remove_directories(node->directory_);
      return lock.status();
    }
    node->lock_fd_ = std::move(lock).value();
    if (has_tables(tables)) continue;
    Status status = node->map_tables(true);
    if (!status) {
      if (status.code() != Code::corrupt) node->remove_files();  // else somebody's
      return status;
    }
  }
}

Result<std::unique_ptr<Node>> Node::open_left_behind(const std::string& directory) {
  std::unique_ptr<Node> node(new Node());
  node->directory_ = directory;
  // Whoever made the directory may have died before it made the files: then they are empty.
  Result<base::UniqueFd> lock = open_file(directory + "/lock", O_RDWR | O_CREAT);
  if (!lock) return lock.status();
  node->lock_fd_ = std::move(lock).value();
  if (flock(node->lock_fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Status(Code::file_in_use, fmt::format("{} is being joined or recovered by another process", directory));
  }
  if (Status status = node->map_tables(false); !status) return status;
  return node;
}

Status Node::map_tables(bool create) {
  const std::string path = directory_ + "/node";
  Result<base::UniqueFd> fd = open_file(path, O_RDWR | O_CREAT);
  if (!fd) return fd.status();
  struct stat st {};
  if (fstat(fd->get(), &st) != 0) return Status::from_errno(errno, "stat").on_path(path);
  const Status other_version(Code::corrupt, fmt::format("{} was made by another version of Spillway", path));
  if (st.st_size == 0 && ftruncate(fd->get(), static_cast<off_t>(kNodeBytes)) != 0)
    return Status::from_errno(errno, "size").on_path(path);
  if (st.st_size != 0 && static_cast<std::size_t>(st.st_size) != kNodeBytes) return other_version;
  const TablesMark found = read_mark(fd->get());
  Result<base::Mapping> mapping = base::Mapping::map(std::move(fd).value(), kNodeBytes);
  if (!mapping) return mapping.status();
  mapping_ = std::move(mapping).value();
  // What is not understood is not touched either: without the mapping, leave() takes nothing for unused.
  const auto refuse = [&](Status status) {
    mapping_.reset();
    return status;
  };
  if (found.magic == kNodeMagic && found.version == kVersion) {
    // What every loop over the tables relies on.
    if (process_count() <= kProcessesMax && header().files <= kFilesMax) return {};
    return refuse(Status(Code::corrupt, fmt::format("the tables of {} do not check", path)));
  }
  if (found.magic != 0) return refuse(other_version);
  // New, or its maker died on the way: nobody has used it.
  if (!create) return mapping_.populate(0, sizeof(NodeHeader)).on_path(path);

  if (Status status = mapping_.populate(0, kFilesOffset); !status) return status.on_path(path);
  NodeHeader& tables = header();
  tables.mutex.init();
  tables.version = kVersion;
  tables.free_file = kNone;
  tables.arena_next = kArenaOffset;
  std::fill(std::begin(tables.file_bucket), std::end(tables.file_bucket), kNone);
  if (getrandom(tables.nonce, sizeof tables.nonce, 0) != sizeof tables.nonce)
    return Status::from_errno(errno, "getrandom");
  tables.magic = kNodeMagic;
  return {};
}

void Node::leave() {
  if (!lock_fd_.valid() || !mapping_.valid()) return;
  // Whoever attaches from now on waits for the lock, finds the name gone and starts anew.
  while (flock(lock_fd_.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  bool unused = true;
  for (std::uint32_t i = 0; i < process_count(); ++i) {
    unused = unused && process(i).live.load(std::memory_order_acquire) == kNotLive;
  }
  if (unused) {
    // Also of those that died before they had told anyone about theirs.
    for (std::uint32_t i = 0; i < process_count(); ++i) unlink(journal_path(i).c_str());
    remove_files();
  }
  lock_fd_.reset();  // and with it the lock
}

void Node::remove_files() const {
  unlink((directory_ + "/node").c_str());
  unlink((directory_ + "/lock").c_str());
  remove_directories(directory_);
}

// --- processes ---

Result<std::uint32_t> Node::add_process(int rank) {
  Locked lock(header());
  const std::uint32_t index = header().processes.load(std::memory_order_relaxed);
  if (index == kProcessesMax) {
    return Status(Code::no_space, fmt::format("more than {} processes of one job on this node", kProcessesMax));
  }
  process(index).pid = static_cast<std::uint32_t>(getpid());
  process(index).rank = rank;
  header().processes.store(index + 1, std::memory_order_release);
  base::MutexLock own_lock(mutex_);
  own_.insert(index);
  return index;
}

void Node::publish_journal(std::uint32_t process_index, std::shared_ptr<JournalMapping> journal) {
  {
    base::MutexLock lock(mutex_);
    if (journals_.size() <= process_index) journals_.resize(process_index + 1);
    journals_[process_index] = std::move(journal);
  }
  process(process_index).live.store(kLive, std::memory_order_release);
  flock(lock_fd_.get(), LOCK_UN);  // attach()'s
}

void Node::forget_process(std::uint32_t process_index) {
  Locked lock(header());
  process(process_index).counted = 1;
}

void Node::remove_process(std::uint32_t process_index, bool keep_journal) {
  if (!keep_journal) unlink(journal_path(process_index).c_str());
  process(process_index).live.store(keep_journal ? kLeftJournal : kNotLive, std::memory_order_release);
}

std::optional<base::RunSummary> Node::add_to_totals(std::uint32_t process_index, const base::RunSummary& part) {
  Locked lock(header());
  NodeTotals& totals = header().totals;
  totals.processes += part.processes;
  totals.bytes_written += part.bytes_written;
  totals.bytes_read += part.bytes_read;
  totals.bytes_staged += part.bytes_staged;
  totals.waited_ns += part.waited_ns;
  totals.hidden_ns += part.hidden_ns;
  totals.drain_ns += part.drain_ns;
  totals.errors += part.errors;
  totals.pending_bytes += part.pending_bytes;
  if (totals.first_error[0] == '\0') part.first_error.copy(totals.first_error, sizeof totals.first_error - 1);
  process(process_index).counted = 1;

  for (std::uint32_t i = 0; i < process_count(); ++i) {
    if (process(i).counted == 0) return std::nullopt;
  }
  base::RunSummary sum;
  sum.processes = totals.processes;
  sum.bytes_written = totals.bytes_written;
  sum.bytes_read = totals.bytes_read;
  sum.bytes_staged = totals.bytes_staged;
  sum.waited_ns = totals.waited_ns;
  sum.hidden_ns = totals.hidden_ns;
  sum.drain_ns = totals.drain_ns;
  sum.errors = totals.errors;
  sum.pending_bytes = totals.pending_bytes;
  sum.first_error = totals.first_error;
  totals = {};  // a process that comes later begins a new count
  return sum;
}

std::string Node::journal_path(std::uint32_t process_index) const {
  return fmt::format("{}/journal.{}", directory_, process_index);
}

std::uint32_t Node::process_count() const { return header().processes.load(std::memory_order_acquire); }

ProcessEntry& Node::process(std::uint32_t i) const {
  assert(i < kProcessesMax);
  return reinterpret_cast<ProcessEntry*>(mapping_.data() + kProcessesOffset)[i];
}

std::shared_ptr<JournalMapping> Node::journal(std::uint32_t process_index) {
  if (process(process_index).live.load(std::memory_order_acquire) == kNotLive) return nullptr;
  base::MutexLock lock(mutex_);
  if (journals_.size() <= process_index) journals_.resize(process_index + 1);
  std::shared_ptr<JournalMapping>& known = journals_[process_index];
  if (known != nullptr) return known;
  Result<base::UniqueFd> fd = open_file(journal_path(process_index), O_RDWR);
  if (!fd) return nullptr;  // left meanwhile, with nothing pending
  struct stat st {};
  if (fstat(fd->get(), &st) != 0) return nullptr;
  Result<base::Mapping> mapping = base::Mapping::map(std::move(fd).value(), static_cast<std::size_t>(st.st_size));
  if (!mapping) return nullptr;
  if (!check_journal_file(*mapping, process_index)) return nullptr;  // damaged: recovery reports it
  known = std::make_shared<JournalMapping>(std::move(mapping).value());
  return known;
}

bool Node::alive(std::uint32_t process_index) const {
  const ProcessEntry& entry = process(process_index);
  if (entry.live.load(std::memory_order_acquire) != kLive) return true;  // not started yet, or left in order
  {
    // Not by its PID: a dead process of another PID namespace, or of before, may have had ours. And not by the lock below, which does
    // not tell a process of its own locks.
    base::MutexLock lock(mutex_);
    if (own_.count(process_index) > 0) return true;
  }
  // The owner holds a lock on its journal for as long as it lives, whatever PID namespace it is in.
  Result<base::UniqueFd> fd = open_file(journal_path(process_index), O_RDWR);
  if (!fd) return entry.live.load(std::memory_order_acquire) != kLive;
  struct flock request {};
  request.l_type = F_WRLCK;
  request.l_whence = SEEK_SET;
  return fcntl(fd->get(), F_GETLK, &request) != 0 || request.l_type != F_UNLCK;
}

bool Node::has_journal(std::uint32_t process_index) const {
  return process(process_index).live.load(std::memory_order_acquire) != kNotLive;
}

bool Node::has_dead_owner(std::uint32_t slot) {
  for (std::uint32_t i = 0; i < process_count(); ++i) {
    if (alive(i)) continue;
    const std::shared_ptr<JournalMapping> mapping = journal(i);
    if (mapping != nullptr && mapping->pending(slot).count.load(std::memory_order_acquire) > 0) return true;
  }
  return false;
}

// --- small shared blocks ---

bool Node::has_word(std::uint64_t offset) const {
  return offset >= kArenaOffset && offset <= kNodeBytes - sizeof(std::uint32_t) && offset % sizeof(std::uint32_t) == 0;
}

Result<std::uint64_t> Node::allocate_block(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(bytes, kPageBytes));
  std::uint64_t offset = 0;
  {
    Locked lock(header());
    std::uint64_t& head = header().arena_free[std::countr_zero(size)];
    if (head != 0) {
      offset = head;
      std::memcpy(&head, block(offset), sizeof head);
      std::memset(block(offset), 0, sizeof head);
    } else if (header().arena_next + size <= kNodeBytes) {
      offset = header().arena_next;
      header().arena_next += size;
    } else {
      return Status(Code::no_space,
                    fmt::format("no room for a shared block of {} bytes: too many files are open", bytes));
    }
  }
  // Without its pages a full /dev/shm would be a SIGBUS later.
  if (Status status = mapping_.populate(offset, bytes); !status) {
    free_block(offset, bytes);
    return status;
  }
  return offset;
}

void Node::free_block(std::uint64_t offset, std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(bytes, kPageBytes));
  // Zeros again, and the memory goes back; the first page stays for the list.
  if (size > kPageBytes) mapping_.discard(offset + kPageBytes, size - kPageBytes);
  std::memset(block(offset), 0, kPageBytes);
  Locked lock(header());
  std::uint64_t& head = header().arena_free[std::countr_zero(size)];
  std::memcpy(block(offset), &head, sizeof head);
  head = offset;
}

// --- waiting ---

void Node::announce_retired() {
  header().retired_event.fetch_add(1, std::memory_order_seq_cst);
  if (header().retired_waiters.load(std::memory_order_seq_cst) > 0) base::futex_wake_all(header().retired_event);
}

std::uint32_t Node::retired_event() const { return header().retired_event.load(std::memory_order_seq_cst); }

void Node::wait_retired(std::uint32_t seen, std::int64_t timeout_ns) {
  header().retired_waiters.fetch_add(1, std::memory_order_seq_cst);
  base::futex_wait(header().retired_event, seen, timeout_ns);
  header().retired_waiters.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace spillway::journal
