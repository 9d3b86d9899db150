// Nonblocking calls. A write is complete once it is in the journal, which takes no longer than starting it would; so each call does its
// work at once and hands out a request that is complete already (MPI-4.1 §14.4.5 allows completion at any time after the start). A
// nonblocking collective call never waits for another rank: each rank's part is an access of its own.
#include <memory>

#include "mpi/api.h"
#include "mpi/buffer.h"
#include "mpi/calls.h"
#include "mpi/transfer.h"

namespace spillway::mpi::calls {
namespace {

// What MPI_Wait and its kin will find in the status.
struct Outcome {
  std::int64_t bytes = 0;
};

int query(void* state, MPI_Status* status) {
  set_status(status, static_cast<const Outcome*>(state)->bytes);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
int free_state(void* state) {
  delete static_cast<Outcome*>(state);
  return MPI_SUCCESS;
}
int cancel(void*, int) { return MPI_SUCCESS; }  // it is complete: too late

int start(FileHandle& handle, const TransferCall& call, MPI_Request* request) {
  Result<std::int64_t> moved = Status(Code::internal, "not done");
  {
    base::MutexLock lock(handle.mutex);
    moved = transfer(handle, call);
  }
  // A failure is reported here, through the file's own error handler; a request's errors would go to a communicator's.
  *request = api().request_null;
  if (!moved) return finish_call(handle, moved.status());
  auto outcome = std::make_unique<Outcome>(Outcome{*moved});
  const int error = api().Grequest_start(&query, &free_state, &cancel, outcome.get(), request);
  if (error != MPI_SUCCESS) return error;
  (void)outcome.release();
  return api().Grequest_complete(*request);
}

}  // namespace

int iread_at(FileHandle& handle, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
             MPI_Request* request) {
  return start(handle, {Pointer::explicit_offset, false, false, offset, buf, count, datatype}, request);
}
int iwrite_at(FileHandle& handle, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
              MPI_Request* request) {
  return start(handle, {Pointer::explicit_offset, false, true, offset, buf, count, datatype}, request);
}
int iread_at_all(FileHandle& handle, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
                 MPI_Request* request) {
  return iread_at(handle, offset, buf, count, datatype, request);
}
int iwrite_at_all(FileHandle& handle, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                  MPI_Request* request) {
  return iwrite_at(handle, offset, buf, count, datatype, request);
}
int iread(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start(handle, {Pointer::individual, false, false, 0, buf, count, datatype}, request);
}
int iwrite(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start(handle, {Pointer::individual, false, true, 0, buf, count, datatype}, request);
}
int iread_all(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return iread(handle, buf, count, datatype, request);
}
int iwrite_all(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return iwrite(handle, buf, count, datatype, request);
}
int iread_shared(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start(handle, {Pointer::shared, false, false, 0, buf, count, datatype}, request);
}
int iwrite_shared(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start(handle, {Pointer::shared, false, true, 0, buf, count, datatype}, request);
}

}  // namespace spillway::mpi::calls
