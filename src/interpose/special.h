#pragma once

#include <mpi.h>

#include <new>

#include "base/inside.h"
#include "mpi/api.h"
#include "mpi/calls.h"
#include "mpi/handle.h"

// What the generated symbols (generate_mpi.py) are made of.
#define SPILLWAY_EXPORT __attribute__((visibility("default")))

namespace spillway::interpose {

// The next definition of a symbol, as a function; null when there is none.
template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(mpi::next_function(name));
}

// What the body calls is not intercepted again, and no exception leaves for the program.
template <typename Body>
int guarded(Body&& body) noexcept {
  const base::Inside inside;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  } catch (...) {
    return MPI_ERR_INTERN;
  }
}

// The functions marked ! in mpi_functions.txt.
namespace special {

int MPI_File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh);
int MPI_File_close(MPI_File* fh);
int MPI_File_delete(const char* filename, MPI_Info info);
int MPI_File_create_errhandler(MPI_File_errhandler_function* function, MPI_Errhandler* errhandler);
int MPI_Errhandler_free(MPI_Errhandler* errhandler);
int MPI_Finalize();
MPI_Fint MPI_File_c2f(MPI_File fh);
MPI_File MPI_File_f2c(MPI_Fint fh);
int MPI_File_toint(MPI_File fh);
MPI_File MPI_File_fromint(int fh);

}  // namespace special
}  // namespace spillway::interpose
