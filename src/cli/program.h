#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/find_program.h"
#include "cli/mpi_abi.h"

namespace spillway::cli {

// What was found out about a program that a launcher is to start.
struct Program {
  std::string word;                   // as the command names it
  std::string path;                   // the file behind it, wrappers skipped
  std::vector<std::string> wrappers;  // `nice`, `env`, ... in front of it
  bool interpreted = false;           // a script or an interpreter: its MPI is not in its libraries
  std::optional<MpiAbi> abi;          // of the MPI library it loads
  LinkedLibrary mpi_library;          // that library; empty without abi
};

// Looks at the program that a command (wrappers, program, arguments) would run. A program without an MPI
// library is no failure here: it may load one later, and the caller may know which. Blocks: on the dynamic
// loader, see linked_libraries(). Fails: as find_program(); unsupported, naming the file, for what LD_PRELOAD
// cannot reach (static, set-user-ID, another machine's or a 32-bit program, an emptied environment) and for
// libraries of several or unknown MPIs.
Result<Program> inspect_program(std::span<const std::string> words, const SearchPlace& place);

}  // namespace spillway::cli
