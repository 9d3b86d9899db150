#pragma once

#include <cstdint>
#include <string>

namespace spillway::cli {

// What the doctor asks the machine. Each answer is a short text for people, "yes", or "no: why".

struct FileSystemSpace {
  std::int64_t size_bytes = 0;
  std::int64_t free_bytes = 0;
  std::string type;  // "tmpfs", "xfs", or the magic number of one that has no name here
};
// All zero where the directory does not exist.
[[nodiscard]] FileSystemSpace file_system_space(const std::string& directory);

[[nodiscard]] std::string kernel_release();
// Cores this process may use.
[[nodiscard]] int core_count();
// Memory of the node, or of its control group where that allows less.
[[nodiscard]] std::int64_t memory_bytes();
[[nodiscard]] std::int64_t available_memory_bytes();
[[nodiscard]] std::int64_t page_bytes();
// The chosen word of /sys/kernel/mm/transparent_hugepage/shmem_enabled.
[[nodiscard]] std::string shared_huge_pages();
[[nodiscard]] std::string fuse_support();
[[nodiscard]] std::string io_uring_support();

struct DirectoryProbe {
  std::string writable;
  std::string fallocate;
  std::string direct_io;
};
// Tries them with one small file, which has no name any more while it is tried.
[[nodiscard]] DirectoryProbe probe_directory(const std::string& directory);

}  // namespace spillway::cli
