#include "base/mapping.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <utility>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; an older kernel answers EINVAL and pages are entered on first touch
#endif

namespace spillway::base {

Result<Mapping> Mapping::map(UniqueFd fd, std::size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (address == MAP_FAILED) return Status::from_errno(errno, fmt::format("mapping {} bytes", bytes));
  madvise(address, bytes, MADV_HUGEPAGE);  // taken up where the system allows huge pages for shared memory
  madvise(address, bytes, MADV_DONTDUMP);  // a core file has no use for it
  Mapping mapping;
  mapping.fd_ = std::move(fd);
  mapping.data_ = static_cast<std::byte*>(address);
  mapping.size_ = bytes;
  return mapping;
}

Mapping::Mapping(Mapping&& other) noexcept
    : fd_(std::move(other.fd_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::move(other.fd_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void Mapping::reset() {
  if (data_ != nullptr) munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
  fd_.reset();
}

Status Mapping::reserve(std::size_t offset, std::size_t bytes) {
  int error = posix_fallocate(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
  while (error == EINTR) error = posix_fallocate(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
  if (error != 0) return Status::from_errno(error, fmt::format("taking {} bytes of shared memory", bytes));
  return {};
}

Status Mapping::populate(std::size_t offset, std::size_t bytes) {
  Status status = reserve(offset, bytes);
  if (status.ok()) populate_existing(offset, bytes);
  return status;
}

Status Mapping::write(std::size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Status::from_errno(written < 0 ? errno : EIO, "writing to shared memory");
    offset += static_cast<std::size_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

void Mapping::populate_existing(std::size_t offset, std::size_t bytes) {
  madvise(data_ + offset, bytes, MADV_POPULATE_WRITE);
}

void Mapping::discard(std::size_t offset, std::size_t bytes) {
  fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
}

}  // namespace spillway::base
