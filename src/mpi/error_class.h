#pragma once

#include "base/status.h"

namespace spillway::mpi {

// MPI's error class for a code (MPI-4.1 §14.7): the one table for that set.
[[nodiscard]] int error_class(Code code);

}  // namespace spillway::mpi
