#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace spillway::storage {

// Which file it is, whatever its name: what pending bytes are keyed by.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct FileAttributes {
  FileIdentity identity;
  std::int64_t birth_ns = 0;  // when it was made, which tells it from a later one of the same identity; 0: not known
  std::int64_t bytes = 0;
  std::int64_t block_bytes = 4096;  // preferred unit of I/O
  std::int64_t links = 1;           // names it has; 0: it will be gone when nobody has it open any more
  bool regular = true;
};

enum class Access { read_only, write_only, read_write };

struct OpenOptions {
  Access access = Access::read_write;
  bool create = false;
  bool exclusive = false;  // with create: fail when it exists
  unsigned permissions = 0666;
};

// One open file of a backend.
// Promises: write() and read() move everything they were asked for or say why not; interrupted and short transfers are
// resumed inside. A write that failed may have changed any part of its range.
// Threads: any number at once, except close.  Blocks: on the storage.
class File {
 public:
  virtual ~File() = default;

  [[nodiscard]] virtual Result<FileAttributes> attributes() = 0;
  // Writes the pieces one after the other from `offset` on.
  virtual Status write(std::int64_t offset, std::span<const iovec> pieces) = 0;
  // Fills `buffer` from `offset`; returns fewer bytes only at the end of the file.
  virtual Result<std::int64_t> read(std::int64_t offset, std::span<std::byte> buffer) = 0;
  virtual Status truncate(std::int64_t bytes) = 0;
  // Makes the file at least `bytes` long without touching what it holds, whatever others do to it at the same time.
  // Fails: unsupported where the file system has no such operation.
  virtual Status grow(std::int64_t bytes) = 0;
  // Takes the space for the first `bytes` bytes; the file is at least that long afterwards.
  virtual Status preallocate(std::int64_t bytes) = 0;
  // Durable against the loss of the machine as far as the file system promises it.
  virtual Status sync() = 0;
  // Errors that the storage reports only now. The object may only be destroyed afterwards.
  virtual Status close() = 0;

  // Waits for and takes, or gives up, an advisory lock on a range: exclusion between processes for read-modify-write and
  // atomic mode.  Fails: unsupported.
  virtual Status lock(std::int64_t offset, std::int64_t length, bool exclusive) = 0;
  virtual Status unlock(std::int64_t offset, std::int64_t length) = 0;
};

// Where files live. posix is the real one; null swallows; fault wraps another and misbehaves on demand.
// Threads: any.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Result<std::unique_ptr<File>> open(const std::string& path, const OpenOptions& options) = 0;
  virtual Status remove(const std::string& path) = 0;
  // Without opening it. Of what carries the name itself: a symbolic link is not followed.
  virtual Result<FileAttributes> attributes(const std::string& path) = 0;
};

}  // namespace spillway::storage
