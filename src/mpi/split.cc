// Split collective calls: the begin does the collective work, the end reports it (MPI-4.1 §14.4.7).
#include <fmt/format.h>

#include <cstring>

#include "mpi/buffer.h"
#include "mpi/calls.h"
#include "mpi/transfer.h"

namespace spillway::mpi::calls {
namespace {

int begin(FileHandle& handle, const char* what, const TransferCall& call) {
  Status status;
  {
    base::MutexLock lock(handle.mutex);
    if (handle.split) {
      status =
          Status(Code::io, fmt::format("{} is still going on: one split collective call at a time (MPI-4.1 §14.4.7)",
                                       handle.split->what));
    } else {
      // When it fails it does so on every rank, and no end follows.
      Result<std::int64_t> moved = transfer(handle, call);
      status = moved.status();
      if (moved.ok()) handle.split = FileHandle::Split{what, call.buf, *moved};
    }
  }
  return finish_call(handle, status);
}

int end(FileHandle& handle, const char* what, const void* buf, MPI_Status* status) {
  Status result;
  {
    base::MutexLock lock(handle.mutex);
    if (!handle.split || std::strcmp(handle.split->what, what) != 0) {
      result = Status(Code::io, fmt::format("no {} has been begun", what));
    } else if (handle.split->buffer != buf) {
      result = Status(Code::bad_argument, "the buffer is not the one given at the begin");
    } else {
      set_status(status, handle.split->bytes);
      handle.split.reset();
    }
  }
  return finish_call(handle, result);
}

}  // namespace

int read_at_all_begin(FileHandle& handle, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(handle, "read_at_all", {Pointer::explicit_offset, true, false, offset, buf, count, datatype});
}
int read_at_all_end(FileHandle& handle, void* buf, MPI_Status* status) {
  return end(handle, "read_at_all", buf, status);
}
int write_at_all_begin(FileHandle& handle, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(handle, "write_at_all", {Pointer::explicit_offset, true, true, offset, buf, count, datatype});
}
int write_at_all_end(FileHandle& handle, const void* buf, MPI_Status* status) {
  return end(handle, "write_at_all", buf, status);
}
int read_all_begin(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(handle, "read_all", {Pointer::individual, true, false, 0, buf, count, datatype});
}
int read_all_end(FileHandle& handle, void* buf, MPI_Status* status) { return end(handle, "read_all", buf, status); }
int write_all_begin(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(handle, "write_all", {Pointer::individual, true, true, 0, buf, count, datatype});
}
int write_all_end(FileHandle& handle, const void* buf, MPI_Status* status) {
  return end(handle, "write_all", buf, status);
}
int read_ordered_begin(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(handle, "read_ordered", {Pointer::ordered, true, false, 0, buf, count, datatype});
}
int read_ordered_end(FileHandle& handle, void* buf, MPI_Status* status) {
  return end(handle, "read_ordered", buf, status);
}
int write_ordered_begin(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(handle, "write_ordered", {Pointer::ordered, true, true, 0, buf, count, datatype});
}
int write_ordered_end(FileHandle& handle, const void* buf, MPI_Status* status) {
  return end(handle, "write_ordered", buf, status);
}

}  // namespace spillway::mpi::calls
