#include "cli/machine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <system_error>

#include "base/fd.h"
#include "base/units.h"

namespace spillway::cli {
namespace {

struct FileSystemName {
  std::int64_t magic;
  std::string_view name;
};
constexpr FileSystemName kFileSystems[] = {
    {0xEF53, "ext4"},     {0x58465342, "xfs"},       {0x9123683E, "btrfs"}, {0x01021994, "tmpfs"},
    {0x6969, "nfs"},      {0x0BD00BD0, "lustre"},    {0x47504653, "gpfs"},  {0x19830326, "beegfs"},
    {0x65735546, "fuse"}, {0x794C7630, "overlayfs"}, {0x2FC12FC1, "zfs"},   {0x00C36400, "cephfs"},
};

std::string no(int error) { return fmt::format("no: {}", std::generic_category().message(error)); }
std::string yes_or_no(bool yes) { return yes ? "yes" : no(errno); }

// "MemAvailable:   123 kB"
std::int64_t meminfo_bytes(std::string_view key) {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::string unit;
  for (std::int64_t kib = 0; file >> name >> kib; std::getline(file, unit)) {
    if (std::string_view(name).starts_with(key)) return kib * base::kKiB;
  }
  return 0;
}

std::int64_t control_group_bytes() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::int64_t bytes = 0;
  return file >> bytes ? bytes : 0;
}

std::string try_direct_write(int fd) {
  constexpr std::size_t kBlock = 4096;
  const int flags = ::fcntl(fd, F_GETFL);
  if (::fcntl(fd, F_SETFL, flags | O_DIRECT) != 0) return no(errno);
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(kBlock, kBlock), &std::free);
  if (block == nullptr) return no(ENOMEM);
  std::memset(block.get(), 0, kBlock);
  return yes_or_no(::pwrite(fd, block.get(), kBlock, 0) == static_cast<ssize_t>(kBlock));
}

}  // namespace

FileSystemSpace file_system_space(const std::string& directory) {
  struct statfs info {};
  if (::statfs(directory.c_str(), &info) != 0) return {};
  FileSystemSpace space;
  space.size_bytes = static_cast<std::int64_t>(info.f_blocks) * info.f_bsize;
  space.free_bytes = static_cast<std::int64_t>(info.f_bavail) * info.f_bsize;
  space.type = fmt::format("{:#x}", static_cast<std::uint32_t>(info.f_type));
  for (const FileSystemName& known : kFileSystems) {
    if (known.magic == static_cast<std::uint32_t>(info.f_type)) space.type = known.name;
  }
  return space;
}

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? fmt::format("{} {}", names.sysname, names.release) : "unknown";
}

int core_count() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores)
                                                           : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

std::int64_t memory_bytes() {
  const std::int64_t node = meminfo_bytes("MemTotal");
  const std::int64_t group = control_group_bytes();
  return group > 0 ? std::min(node, group) : node;
}

std::int64_t available_memory_bytes() { return meminfo_bytes("MemAvailable"); }

std::int64_t page_bytes() { return ::sysconf(_SC_PAGESIZE); }

std::string shared_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string words;
  std::getline(file, words);
  const std::size_t begin = words.find('[');
  const std::size_t end = words.find(']');
  return begin == std::string::npos || end == std::string::npos ? "unknown" : words.substr(begin + 1, end - begin - 1);
}

std::string fuse_support() {
  const base::UniqueFd fd(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  return yes_or_no(fd.valid());
}

std::string io_uring_support() {
  io_uring_params parameters{};
  const base::UniqueFd fd(static_cast<int>(::syscall(SYS_io_uring_setup, 1, &parameters)));
  return yes_or_no(fd.valid());
}

DirectoryProbe probe_directory(const std::string& directory) {
  std::string path = directory + "/.spillway-probe-XXXXXX";
  const base::UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) return {no(errno), "not tried", "not tried"};
  ::unlink(path.c_str());
  DirectoryProbe probe;
  probe.writable = "yes";
  probe.fallocate = yes_or_no(::fallocate(fd.get(), 0, 0, base::kMiB) == 0);
  probe.direct_io = try_direct_write(fd.get());
  return probe;
}

}  // namespace spillway::cli
