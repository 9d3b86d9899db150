#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace spillway::cli {

// The binary interfaces among MPIs; each has its own preload library.
enum class MpiAbi { mpich, openmpi, standard };

// "mpich", "openmpi", "abi": the word of --mpi and of the library's file name.
[[nodiscard]] std::string_view name_of(MpiAbi abi);
[[nodiscard]] std::optional<MpiAbi> abi_of_name(std::string_view name);
// "MPICH", "Open MPI", "standard MPI ABI": for messages.
[[nodiscard]] std::string_view title_of(MpiAbi abi);

// The ABI that a shared library of this name implements: libmpi.so.12 and its relatives (libmpich.so.12,
// libmpi_cray.so.12), libmpi.so.40, libmpi_abi.so.N. Nothing for any other library, Fortran bindings
// included.
[[nodiscard]] std::optional<MpiAbi> abi_of_library(std::string_view soname);
// A libmpi of a version that none of the above names, for example libmpi.so.20.
[[nodiscard]] bool is_foreign_libmpi(std::string_view soname);

// A library that a program loads: "libmpi.so.12" and where the loader finds it (empty: it does not).
struct LinkedLibrary {
  std::string soname;
  std::string path;
};

// Reads what `ld.so --list PROGRAM` prints.
[[nodiscard]] std::vector<LinkedLibrary> parse_loader_list(std::string_view text);

// Every library that a dynamic program loads when it starts, as its own dynamic loader resolves them: rpath,
// runpath, LD_LIBRARY_PATH and cache included, LD_PRELOAD not. The program is not run, only the loader, and
// only one that is called as loaders are; where that fails, the libraries that the program itself names,
// without their paths. Blocks: on the loader, 10 s at most.
[[nodiscard]] std::vector<LinkedLibrary> linked_libraries(const std::string& program, const std::string& loader,
                                                          const std::vector<std::string>& needed);

// Where the preload libraries are looked for: SPILLWAY_LIBDIR alone where it is set, else lib, lib/spillway,
// lib64 and lib64/spillway beside the directory of this executable.
[[nodiscard]] std::vector<std::string> library_directories();
// Fails: no_such_file, naming the file and where it was looked for; unsupported for a path that LD_PRELOAD
// cannot hold.
Result<std::string> preload_library(MpiAbi abi);

}  // namespace spillway::cli
