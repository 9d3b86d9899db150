#include "cli/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace spillway::cli {
namespace {

constexpr std::size_t kSegmentsMax = 256;
constexpr std::size_t kDynamicMax = 4096;
constexpr std::size_t kNameMax = 4096;

constexpr unsigned char kOwnByteOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

class ElfReader {
 public:
  ElfReader(int fd, const std::string& path) : fd_(fd), path_(path) {}

  Result<ElfFile> read() {
    unsigned char ident[EI_NIDENT] = {};
    if (!read_at(0, ident, sizeof ident) || std::memcmp(ident, ELFMAG, SELFMAG) != 0) {
      return Status(Code::unsupported, fmt::format("{} is not an ELF file", path_));
    }
    ElfFile file;
    file.bits = ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
    // e_machine lies at the same place in both classes.
    unsigned char machine[2] = {};
    if (!read_at(offsetof(Elf64_Ehdr, e_machine), machine, sizeof machine)) return corrupt("the header");
    const bool little = ident[EI_DATA] == ELFDATA2LSB;
    file.machine = static_cast<std::uint16_t>(little ? machine[0] | machine[1] << 8 : machine[0] << 8 | machine[1]);
    if (file.bits != 64 || ident[EI_DATA] != kOwnByteOrder) return file;
    if (Status status = read_segments(file); !status.ok()) return status;
    return file;
  }

 private:
  [[nodiscard]] Status corrupt(std::string_view what) const {
    return {Code::corrupt, fmt::format("{} is a damaged ELF file: {} cannot be read", path_, what)};
  }

  bool read_at(std::uint64_t offset, void* to, std::size_t size) const {
    auto* bytes = static_cast<unsigned char*>(to);
    while (size > 0) {
      if (offset > static_cast<std::uint64_t>(INT64_MAX)) return false;
      const ssize_t count = ::pread(fd_, bytes, size, static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes += count;
      size -= static_cast<std::size_t>(count);
      offset += static_cast<std::uint64_t>(count);
    }
    return true;
  }

  template <typename T>
  bool read_array(std::uint64_t offset, std::size_t count, std::size_t count_max, std::vector<T>& to) const {
    to.resize(std::min(count, count_max));
    return to.empty() || read_at(offset, to.data(), to.size() * sizeof(T));
  }

  bool read_name(std::uint64_t offset, std::string& name) const {
    for (char c = 0; name.size() < kNameMax; name += c) {
      if (!read_at(offset + name.size(), &c, 1)) return false;
      if (c == '\0') return true;
    }
    return false;
  }

  // The place in the file of a virtual address, as the loader maps it.
  [[nodiscard]] bool offset_of(std::uint64_t address, std::uint64_t& offset) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
      if (address - segment.p_vaddr >= segment.p_filesz) continue;
      offset = segment.p_offset + (address - segment.p_vaddr);
      return true;
    }
    return false;
  }

  Status read_segments(ElfFile& file) {
    Elf64_Ehdr header{};
    if (!read_at(0, &header, sizeof header)) return corrupt("the header");
    file.executable = header.e_type == ET_EXEC || (header.e_type == ET_DYN && header.e_entry != 0);
    if (header.e_phnum > 0 && header.e_phentsize != sizeof(Elf64_Phdr)) return corrupt("the segment table");
    const bool read_all = read_array(header.e_phoff, header.e_phnum, kSegmentsMax, segments_);
    if (!read_all) return corrupt("the segment table");
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_INTERP && !read_name(segment.p_offset, file.interpreter)) {
        return corrupt("the name of the loader");
      }
      if (segment.p_type != PT_DYNAMIC) continue;
      if (Status status = read_dynamic(segment, file); !status.ok()) return status;
    }
    return {};
  }

  Status read_dynamic(const Elf64_Phdr& segment, ElfFile& file) {
    std::vector<Elf64_Dyn> entries;
    if (!read_array(segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn), kDynamicMax, entries)) {
      return corrupt("the dynamic section");
    }
    const auto end = std::ranges::find(entries, DT_NULL, &Elf64_Dyn::d_tag);
    const auto table =
        std::find_if(entries.begin(), end, [](const Elf64_Dyn& entry) { return entry.d_tag == DT_STRTAB; });
    if (table == end) return {};
    std::uint64_t strings = 0;
    if (!offset_of(table->d_un.d_ptr, strings)) return corrupt("the string table");
    for (auto entry = entries.begin(); entry != end; ++entry) {
      if (entry->d_tag != DT_NEEDED) continue;
      std::string name;
      if (!read_name(strings + entry->d_un.d_val, name)) return corrupt("the name of a library");
      file.needed.push_back(std::move(name));
    }
    return {};
  }

  int fd_;
  const std::string& path_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace

Result<ElfFile> read_elf(const std::string& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Status::from_errno(errno, path);
  return ElfReader(fd.get(), path).read();
}

}  // namespace spillway::cli
