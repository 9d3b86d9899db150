#pragma once

#include <mpi.h>

#include <cstdint>

#include "base/status.h"
#include "mpi/handle.h"

namespace spillway::mpi {

// Where a transfer begins and what it moves: the thirteen ways of MPI-4.1 §14.4 in one.
enum class Pointer { explicit_offset, individual, shared, ordered };
struct TransferCall {
  Pointer pointer = Pointer::individual;
  bool collective = false;  // ordered calls are collective by themselves
  bool writing = false;
  MPI_Offset offset = 0;  // explicit_offset only
  const void* buf = nullptr;
  MPI_Count count = 0;
  MPI_Datatype datatype{};
};

// Does it; bytes moved. The handle's lock is held by the caller.
Result<std::int64_t> transfer(FileHandle& handle, const TransferCall& call);

}  // namespace spillway::mpi
