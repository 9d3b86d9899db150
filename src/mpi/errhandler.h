#pragma once

#include <mpi.h>

#include "base/status.h"

// Error handlers of files (MPI-4.1 §14.7). MPI has no call that gives back the function behind an MPI_Errhandler, and none that invokes one
// on a handle that MPI does not know; so we note the functions as they are made into handlers. MPI counts who holds a handler; what we hand
// out without it we take back without it, and a handler that the program frees lives on while a file of ours uses it.
namespace spillway::mpi {

// What a file of ours has: a handler and, unless predefined, the function in it.
struct ErrorHandler {
  MPI_Errhandler handle{};
  MPI_File_errhandler_function* function = nullptr;
};

// MPI_File_create_errhandler and MPI_Errhandler_free as the program calls them.
int create_errhandler(MPI_File_errhandler_function* function, MPI_Errhandler* handle);
int free_errhandler(MPI_Errhandler* handle);

// For a file that is being opened: what MPI_FILE_NULL has (MPI-4.1 §14.7).
ErrorHandler inherited_handler();
// Takes a handler into use, or gives one up.
ErrorHandler use_handler(MPI_Errhandler handle);
void release_handler(ErrorHandler& handler);
// The handle for MPI_File_get_errhandler: one more for the program to free.
MPI_Errhandler get_handler(const ErrorHandler& handler);

// Does what the handler says about `error` on `file` and returns what the MPI call returns.
int invoke(const ErrorHandler& handler, MPI_File file, int error);
// The same for MPI_FILE_NULL's handler: for open and delete.
int invoke_on_null(const Status& status);

}  // namespace spillway::mpi
