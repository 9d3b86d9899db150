#include "storage/posix_backend.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <vector>

#include "base/fd.h"
#include "base/units.h"

namespace spillway::storage {
namespace {

#ifndef XFS_SUPER_MAGIC
constexpr long kXfsMagic = 0x58465342;
#else
constexpr long kXfsMagic = XFS_SUPER_MAGIC;
#endif

// The kernel moves at most this much in one call and would silently stop there.
constexpr std::size_t kTransferBytesMax = 1 << 30;

bool direct_pays(int fd) {
  struct statfs fs {};
  if (fstatfs(fd, &fs) != 0) return false;
  return fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == kXfsMagic;
}

FileAttributes attributes_of(const struct stat& st) {
  FileAttributes attributes;
  attributes.identity = {static_cast<std::uint64_t>(st.st_dev), static_cast<std::uint64_t>(st.st_ino)};
  attributes.bytes = st.st_size;
  attributes.block_bytes = st.st_blksize;
  attributes.links = static_cast<std::int64_t>(st.st_nlink);
  attributes.regular = S_ISREG(st.st_mode);
  return attributes;
}

std::int64_t birth_ns_of(int fd) {
  struct statx st {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) != 0 || (st.stx_mask & STATX_BTIME) == 0) return 0;
  return st.stx_btime.tv_sec * 1'000'000'000 + st.stx_btime.tv_nsec;
}

bool aligned(std::int64_t offset, const iovec& piece) {
  const auto address = reinterpret_cast<std::uintptr_t>(piece.iov_base);
  return ((static_cast<std::uintptr_t>(offset) | address | piece.iov_len) & (kDirectAlignment - 1)) == 0;
}

// A list of memory pieces of which some leading bytes have been dealt with.
class PieceQueue {
 public:
  explicit PieceQueue(std::span<const iovec> pieces) : pieces_(pieces) { skip_empty(); }
  [[nodiscard]] bool empty() const { return next_ == pieces_.size(); }
  [[nodiscard]] iovec front() const {
    return {static_cast<std::byte*>(pieces_[next_].iov_base) + done_, pieces_[next_].iov_len - done_};
  }
  // Collects pieces for one call, at most `bytes_max` together.
  void gather(std::vector<iovec>& out, std::size_t bytes_max) const {
    out.clear();
    std::size_t skip = done_;
    for (std::size_t i = next_; i < pieces_.size() && out.size() < IOV_MAX && bytes_max > 0; ++i) {
      const std::size_t length = std::min(pieces_[i].iov_len - skip, bytes_max);
      if (length > 0) out.push_back({static_cast<std::byte*>(pieces_[i].iov_base) + skip, length});
      bytes_max -= length;
      skip = 0;
    }
  }
  void consume(std::size_t bytes) {
    done_ += bytes;
    while (next_ < pieces_.size() && done_ >= pieces_[next_].iov_len) {
      done_ -= pieces_[next_].iov_len;
      ++next_;
    }
    skip_empty();
  }

 private:
  void skip_empty() {
    while (next_ < pieces_.size() && pieces_[next_].iov_len == 0) ++next_;
  }
  std::span<const iovec> pieces_;
  std::size_t next_ = 0;
  std::size_t done_ = 0;
};

class PosixFile final : public File {
 public:
  PosixFile(base::UniqueFd fd, std::string path, base::DirectIo direct) : fd_(std::move(fd)), path_(std::move(path)) {
    const bool wanted = direct == base::DirectIo::on || (direct == base::DirectIo::automatic && direct_pays(fd_.get()));
    if (wanted) open_direct();
    birth_ns_ = birth_ns_of(fd_.get());
  }

  Result<FileAttributes> attributes() override {
    struct stat st {};
    if (fstat(fd_.get(), &st) != 0) return Status::from_errno(errno, "stat").on_path(path_);
    FileAttributes attributes = attributes_of(st);
    attributes.birth_ns = birth_ns_;
    return attributes;
  }

  Status write(std::int64_t offset, std::span<const iovec> pieces) override {
    PieceQueue queue(pieces);
    std::vector<iovec> batch;
    while (!queue.empty()) {
      std::size_t bytes = 0;
      if (direct_range(offset, queue.front(), bytes)) {
        batch.assign(1, {queue.front().iov_base, bytes});
      } else {
        // Up to where the next directly writable part of this piece begins, or as many pieces as one call takes.
        queue.gather(batch, bytes);
      }
      const bool direct = use_direct(offset, batch);
      const ssize_t written =
          ::pwritev(direct ? direct_fd_.get() : fd_.get(), batch.data(), static_cast<int>(batch.size()), offset);
      if (written > 0) {
        queue.consume(static_cast<std::size_t>(written));
        offset += written;
        continue;
      }
      const int error = written == 0 ? EIO : errno;
      if (error == EINTR) continue;
      if (direct && error == EINVAL) {
        direct_usable_.store(false, std::memory_order_relaxed);
        continue;
      }
      return Status::from_errno(error, fmt::format("write of {} bytes", queue.front().iov_len))
          .at_offset(offset)
          .on_path(path_);
    }
    return {};
  }

  Result<std::int64_t> read(std::int64_t offset, std::span<std::byte> buffer) override {
    std::size_t done = 0;
    while (done < buffer.size()) {
      const std::size_t bytes = std::min(buffer.size() - done, kTransferBytesMax);
      const ssize_t got = ::pread(fd_.get(), buffer.data() + done, bytes, offset + static_cast<std::int64_t>(done));
      if (got == 0) break;
      if (got > 0) {
        done += static_cast<std::size_t>(got);
      } else if (errno != EINTR) {
        return Status::from_errno(errno, fmt::format("read of {} bytes", bytes))
            .at_offset(offset + static_cast<std::int64_t>(done))
            .on_path(path_);
      }
    }
    return static_cast<std::int64_t>(done);
  }

  Status truncate(std::int64_t bytes) override {
    return retried([&] { return ::ftruncate(fd_.get(), bytes); }, "truncate");
  }

  Status grow(std::int64_t bytes) override {
    if (bytes <= 0) return {};
    struct stat st {};
    if (fstat(fd_.get(), &st) == 0 && st.st_size >= bytes) return {};
    // Allocating the last byte moves the end of the file up, never down, in one step of the kernel.
    return retried([&] { return ::fallocate(fd_.get(), 0, bytes - 1, 1); }, "extend");
  }

  Status preallocate(std::int64_t bytes) override {
    if (bytes <= 0) return {};
    Status status = retried([&] { return ::fallocate(fd_.get(), 0, 0, bytes); }, "preallocate");
    if (status.code() != Code::unsupported) return status;
    return retried([&] { return posix_fallocate_errno(bytes); }, "preallocate");
  }

  Status sync() override {
    return retried([&] { return ::fsync(fd_.get()); }, "sync");
  }

  Status close() override {
    direct_fd_.reset();
    // Not retried on EINTR: on Linux the descriptor is gone either way.
    if (fd_.valid() && ::close(fd_.release()) != 0 && errno != EINTR)
      return Status::from_errno(errno, "close").on_path(path_);
    return {};
  }

  Status lock(std::int64_t offset, std::int64_t length, bool exclusive) override {
    return set_lock(exclusive ? F_WRLCK : F_RDLCK, offset, length);
  }
  Status unlock(std::int64_t offset, std::int64_t length) override { return set_lock(F_UNLCK, offset, length); }

 private:
  void open_direct() {
    const int flags = fcntl(fd_.get(), F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return;
    const std::string self = fmt::format("/proc/self/fd/{}", fd_.get());
    direct_fd_ = base::above_stdio(::open(self.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
    direct_usable_.store(direct_fd_.valid(), std::memory_order_relaxed);
  }

  // True when a leading part of `piece` can be written directly: its length in `bytes`. Otherwise `bytes` says how much to
  // write through the page cache before the next such part begins.
  bool direct_range(std::int64_t offset, const iovec& piece, std::size_t& bytes) const {
    bytes = kTransferBytesMax;
    if (!direct_usable_.load(std::memory_order_relaxed)) return false;
    const auto address = reinterpret_cast<std::uintptr_t>(piece.iov_base);
    const auto misfit = static_cast<std::size_t>(-offset & (kDirectAlignment - 1));
    if (((address + misfit) & (kDirectAlignment - 1)) != 0) return false;  // memory and file are not aligned alike
    if (piece.iov_len < misfit + kDirectBytesMin) return false;
    if (misfit != 0) {
      bytes = misfit;
      return false;
    }
    bytes = std::min(base::round_down(piece.iov_len, static_cast<std::size_t>(kDirectAlignment)), kTransferBytesMax);
    return true;
  }

  [[nodiscard]] bool use_direct(std::int64_t offset, const std::vector<iovec>& batch) const {
    return direct_usable_.load(std::memory_order_relaxed) && batch.size() == 1 &&
           batch[0].iov_len >= static_cast<std::size_t>(kDirectBytesMin) && aligned(offset, batch[0]);
  }

  int posix_fallocate_errno(std::int64_t bytes) const {
    const int error = ::posix_fallocate(fd_.get(), 0, bytes);
    if (error == 0) return 0;
    errno = error;
    return -1;
  }

  template <typename Call>
  Status retried(Call&& call, std::string_view what) {
    while (call() != 0) {
      if (errno != EINTR) return Status::from_errno(errno, what).on_path(path_);
    }
    return {};
  }

  Status set_lock(short type, std::int64_t offset, std::int64_t length) {
    struct flock request {};
    request.l_type = type;
    request.l_whence = SEEK_SET;
    request.l_start = offset;
    request.l_len = length;
    Status status = retried([&] { return ::fcntl(fd_.get(), F_OFD_SETLKW, &request); }, "lock");
    if (status.errno_value() == ENOLCK) return Status(Code::unsupported, status.what());
    return status;
  }

  base::UniqueFd fd_;
  base::UniqueFd direct_fd_;
  // Only ever switched off, by whoever first learns that direct writes are refused: relaxed, paired with nothing.
  std::atomic<bool> direct_usable_{false};
  std::int64_t birth_ns_ = 0;
  std::string path_;
};

class PosixBackend final : public Backend {
 public:
  explicit PosixBackend(base::DirectIo direct) : direct_(direct) {}

  Result<std::unique_ptr<File>> open(const std::string& path, const OpenOptions& options) override {
    int flags = O_CLOEXEC;
    switch (options.access) {
      case Access::read_only:
        flags |= O_RDONLY;
        break;
      case Access::write_only:
        flags |= O_WRONLY;
        break;
      case Access::read_write:
        flags |= O_RDWR;
        break;
    }
    if (options.create) flags |= O_CREAT;
    if (options.exclusive) flags |= O_EXCL;
    int fd = -1;
    do {
      fd = ::open(path.c_str(), flags, options.permissions);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) return Status::from_errno(errno, "open").on_path(path);
    return std::unique_ptr<File>(std::make_unique<PosixFile>(base::above_stdio(fd), path, direct_));
  }

  Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return Status::from_errno(errno, "delete").on_path(path);
    return {};
  }

  Result<FileAttributes> attributes(const std::string& path) override {
    struct stat st {};
    if (::lstat(path.c_str(), &st) != 0) return Status::from_errno(errno, "stat").on_path(path);
    return attributes_of(st);
  }

 private:
  base::DirectIo direct_;
};

}  // namespace

std::unique_ptr<Backend> make_posix_backend(base::DirectIo direct) { return std::make_unique<PosixBackend>(direct); }

}  // namespace spillway::storage
