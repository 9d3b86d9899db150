#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace spillway::base {

// A shared read-write mapping of a whole file, with the descriptor it came from.
// Threads: the object by one; the memory by whatever rules its content has.
class Mapping {
 public:
  Mapping() = default;
  // Takes the descriptor. `bytes` may be far more than memory: pages come into being when touched, the address space is not
  // reserved against memory.  Fails: from mmap.
  static Result<Mapping> map(UniqueFd fd, std::size_t bytes);

  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { reset(); }

  [[nodiscard]] bool valid() const { return data_ != nullptr; }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  void reset();

  // Makes sure that touching [offset, offset + bytes) cannot fail: takes the pages from the file system now (a full tmpfs is an
  // error here and a SIGBUS later).  Fails: no_space.
  Status reserve(std::size_t offset, std::size_t bytes);
  // The same, and enters them in this process's page table.
  Status populate(std::size_t offset, std::size_t bytes);
  // Enters existing pages in this process's page table; an advice, never an error.
  void populate_existing(std::size_t offset, std::size_t bytes);
  // Writes through the descriptor: the way to fill pages that nobody has mapped yet, without a fault for each.
  Status write(std::size_t offset, std::span<const std::byte> bytes);
  // Gives the pages back to the system; they read as zeros afterwards.
  void discard(std::size_t offset, std::size_t bytes);

 private:
  UniqueFd fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spillway::base
