#include "mpi/transfer.h"

#include <fmt/format.h>

#include "mpi/buffer.h"
#include "mpi/calls.h"

namespace spillway::mpi {
namespace {

// MPI-4.1 §14.2.1: a sequential file knows no pointers but the shared one.
Status check_mode(const FileHandle& handle, const TransferCall& call) {
  const bool shared = call.pointer == Pointer::shared || call.pointer == Pointer::ordered;
  if (handle.file->mode().sequential && !shared) {
    return Status(Code::unsupported,
                  "the file was opened with MPI_MODE_SEQUENTIAL: only the shared file pointer can be used");
  }
  return {};
}

Result<std::int64_t> begin_of(FileHandle& handle, const TransferCall& call, const TransferBuffer& buffer,
                              const Status& precondition) {
  file::OpenFile& file = *handle.file;
  switch (call.pointer) {
    case Pointer::explicit_offset:
      return static_cast<std::int64_t>(call.offset);
    case Pointer::individual:
      return file.position();
    case Pointer::shared:
      return precondition.ok() ? file.take_shared(buffer.bytes()) : Result<std::int64_t>(std::int64_t{0});
    case Pointer::ordered:
      return file.take_ordered(buffer.bytes(), precondition);  // collective
  }
  return Status(Code::internal, "a transfer without a pointer");
}

}  // namespace

Result<std::int64_t> transfer(FileHandle& handle, const TransferCall& call) {
  file::OpenFile& file = *handle.file;
  TransferBuffer buffer(handle, call.buf, call.count, call.datatype, call.writing);
  Status precondition = check_mode(handle, call);
  if (precondition.ok()) precondition = buffer.status();
  Result<std::int64_t> begin = begin_of(handle, call, buffer, precondition);
  // Whoever failed in the collective part of that did so together with all others.
  if (!begin) return begin.status();

  file::OpenFile::Transfer what;
  what.offset = *begin;
  what.memory = &buffer.layout();
  what.length = buffer.bytes();
  what.precondition = precondition;
  const bool collective = call.collective || call.pointer == Pointer::ordered;
  Result<std::int64_t> moved = std::int64_t{0};
  if (call.writing) {
    const Status status = collective ? file.write_all(what) : file.write(what);
    moved = status.ok() ? Result<std::int64_t>(what.length) : Result<std::int64_t>(status);
  } else {
    moved = collective ? file.read_all(what) : file.read(what);
    if (moved.ok()) {
      if (Status status = buffer.finish_read(*moved); !status) return status;
    }
  }
  if (moved.ok() && call.pointer == Pointer::individual) file.set_position(*begin + *moved / file.view().etype_bytes());
  return moved;
}

namespace calls {
namespace {

int blocking(FileHandle& handle, const TransferCall& call, MPI_Status* status) {
  Result<std::int64_t> moved = Status(Code::internal, "not done");
  {
    base::MutexLock lock(handle.mutex);
    moved = transfer(handle, call);
  }
  if (moved.ok()) set_status(status, *moved);
  return finish_call(handle, moved.status());
}

}  // namespace

int read_at(FileHandle& handle, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
            MPI_Status* status) {
  return blocking(handle, {Pointer::explicit_offset, false, false, offset, buf, count, datatype}, status);
}
int read_at_all(FileHandle& handle, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
                MPI_Status* status) {
  return blocking(handle, {Pointer::explicit_offset, true, false, offset, buf, count, datatype}, status);
}
int write_at(FileHandle& handle, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
             MPI_Status* status) {
  return blocking(handle, {Pointer::explicit_offset, false, true, offset, buf, count, datatype}, status);
}
int write_at_all(FileHandle& handle, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                 MPI_Status* status) {
  return blocking(handle, {Pointer::explicit_offset, true, true, offset, buf, count, datatype}, status);
}
int read(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(handle, {Pointer::individual, false, false, 0, buf, count, datatype}, status);
}
int read_all(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(handle, {Pointer::individual, true, false, 0, buf, count, datatype}, status);
}
int write(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(handle, {Pointer::individual, false, true, 0, buf, count, datatype}, status);
}
int write_all(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(handle, {Pointer::individual, true, true, 0, buf, count, datatype}, status);
}
int read_shared(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(handle, {Pointer::shared, false, false, 0, buf, count, datatype}, status);
}
int write_shared(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(handle, {Pointer::shared, false, true, 0, buf, count, datatype}, status);
}
int read_ordered(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(handle, {Pointer::ordered, true, false, 0, buf, count, datatype}, status);
}
int write_ordered(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(handle, {Pointer::ordered, true, true, 0, buf, count, datatype}, status);
}

}  // namespace calls
}  // namespace spillway::mpi
