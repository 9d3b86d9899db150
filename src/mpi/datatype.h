#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "extent/pattern.h"

namespace spillway::mpi {

// A datatype taken apart: its pieces as a nested pattern, and its size and extent.
struct Datatype {
  extent::Pattern pattern;
  std::int64_t bytes = 0;
  std::int64_t extent = 0;
  bool predefined = false;
};

// Decodes any datatype, derived ones once: the result is kept as an attribute of the type.  Cost: O(how the type was built).
// Threads: any.  Fails: bad_type for MPI_DATATYPE_NULL and for layouts that do not fit into 63 bits.
Result<std::shared_ptr<const Datatype>> decode(MPI_Datatype datatype);

}  // namespace spillway::mpi
