#include "cli/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/elf.h"

namespace spillway::cli {
namespace {

bool is_script(const std::string& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char begin[2] = {};
  return fd.valid() && ::read(fd.get(), begin, sizeof begin) == 2 && begin[0] == '#' && begin[1] == '!';
}

// The loader ignores LD_PRELOAD for a program that gains rights when it starts.
bool gains_rights(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  return ((info.st_mode & S_ISUID) != 0 && info.st_uid != ::getuid()) ||
         ((info.st_mode & S_ISGID) != 0 && info.st_gid != ::getgid());
}

Status refuse(const std::string& path, std::string_view why) {
  return {Code::unsupported, fmt::format("{} {}", path, why)};
}

Status check_reachable(const std::string& path, const ElfFile& elf) {
  if (elf.bits != 64) {
    return refuse(path, "is a 32-bit program; accepted: 64-bit programs");
  }
  const Result<ElfFile> self = read_elf("/proc/self/exe");
  if (self.ok() && self.value().machine != elf.machine) {
    return refuse(path, "is built for another kind of processor than Spillway");
  }
  if (elf.interpreter.empty()) {
    return refuse(path,
                  "is a static binary, which no library can be preloaded into; accepted: a dynamic one (link it "
                  "without -static)");
  }
  if (gains_rights(path)) {
    return refuse(path, "is set-user-ID or set-group-ID, and the loader preloads nothing into such programs");
  }
  return {};
}

Status find_mpi(const std::vector<LinkedLibrary>& libraries, Program& program) {
  for (const LinkedLibrary& library : libraries) {
    const std::optional<MpiAbi> abi = abi_of_library(library.soname);
    if (!abi && is_foreign_libmpi(library.soname)) {
      return refuse(program.path,
                    fmt::format("is linked to {}, an MPI without a preload library; accepted: libmpi.so.12 "
                                "(MPICH and its relatives), libmpi.so.40 (Open MPI 3 to 5)",
                                library.soname));
    }
    if (!abi) continue;
    if (program.abi && *program.abi != *abi) {
      return refuse(program.path,
                    fmt::format("is linked to two MPIs, {} and {}", program.mpi_library.soname, library.soname));
    }
    if (!program.abi) program.mpi_library = library;
    program.abi = abi;
  }
  return {};
}

Status inspect_file(Program& program) {
  if (is_script(program.path)) {
    program.interpreted = true;
    return {};
  }
  const Result<ElfFile> elf = read_elf(program.path);
  if (!elf.ok() && elf.status().code() == Code::unsupported) {
    return refuse(program.path, "is neither an ELF program nor a script that begins with #!");
  }
  if (!elf.ok()) return elf.status();
  if (Status status = check_reachable(program.path, elf.value()); !status.ok()) return status;
  program.interpreted = is_interpreter_name(base_name_of(program.path));
  return find_mpi(linked_libraries(program.path, elf.value().interpreter, elf.value().needed), program);
}

}  // namespace

Result<Program> inspect_program(std::span<const std::string> words, const SearchPlace& place) {
  Program program;
  for (std::size_t count = wrapper_words(words); count > 0; count = wrapper_words(words)) {
    if (wrapper_clears_environment(words)) {
      return refuse(words[0], "-i empties the environment that Spillway is handed over in; accepted: env without -i");
    }
    if (Result<std::string> wrapper = find_program(words[0], place); !wrapper.ok()) return wrapper.status();
    program.wrappers.emplace_back(base_name_of(words[0]));
    words = words.subspan(count);
  }
  program.word = words.empty() ? "" : words[0];
  Result<std::string> path = find_program(program.word, place);
  if (!path.ok()) return path.status();
  program.path = std::move(path.value());
  if (Status status = inspect_file(program); !status.ok()) return status;
  return program;
}

}  // namespace spillway::cli
