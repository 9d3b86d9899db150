#pragma once

#include <mpi.h>

#include "file/hints.h"

namespace spillway::mpi {

// Applies every hint of an MPI_Info; MPI_INFO_NULL has none.
void apply_info(file::Hints& hints, MPI_Info info);

// A new MPI_Info with the hints in force.
int make_info(const file::Hints& hints, MPI_Info* info);

}  // namespace spillway::mpi
