#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi/datatype.h"
#include "mpi/handle.h"

// The MPI_File functions on a managed file, one for each of MPI-4.1 chapter 14: what the interposed symbols call. They return MPI error
// classes, after the file's error handler has seen them. Counts are MPI_Count: the int forms and the _c forms are the same here.
// Threads: as the program's MPI thread level has it; calls on one handle one after the other.
namespace spillway::mpi::calls {

// --- open, close, delete (open_close.cc): `next` is what would have been called without us ---
int open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh, decltype(&PMPI_File_open) next);
int close(FileHandle& handle, MPI_File* fh);
int remove(const char* filename, MPI_Info info, decltype(&PMPI_File_delete) next);

// --- state (state.cc) ---
int set_size(FileHandle& handle, MPI_Offset size);
int preallocate(FileHandle& handle, MPI_Offset size);
int get_size(FileHandle& handle, MPI_Offset* size);
int get_group(FileHandle& handle, MPI_Group* group);
int get_amode(FileHandle& handle, int* amode);
int set_info(FileHandle& handle, MPI_Info info);
int get_info(FileHandle& handle, MPI_Info* info_used);
int set_view(FileHandle& handle, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep,
             MPI_Info info);
int get_view(FileHandle& handle, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype, char* datarep);
int get_byte_offset(FileHandle& handle, MPI_Offset offset, MPI_Offset* disp);
int seek(FileHandle& handle, MPI_Offset offset, int whence);
int get_position(FileHandle& handle, MPI_Offset* offset);
int seek_shared(FileHandle& handle, MPI_Offset offset, int whence);
int get_position_shared(FileHandle& handle, MPI_Offset* offset);
int set_atomicity(FileHandle& handle, int flag);
int get_atomicity(FileHandle& handle, int* flag);
int sync(FileHandle& handle);
int type_extent(FileHandle& handle, MPI_Datatype datatype, std::int64_t* extent);
template <typename Extent>
int get_type_extent(FileHandle& handle, MPI_Datatype datatype, Extent* extent) {
  std::int64_t value = 0;
  const int error = type_extent(handle, datatype, &value);
  if (error == MPI_SUCCESS) *extent = static_cast<Extent>(value);
  return error;
}
int set_errhandler(FileHandle& handle, MPI_Errhandler errhandler);
int get_errhandler(FileHandle& handle, MPI_Errhandler* errhandler);
int call_errhandler(FileHandle& handle, int errorcode);

// --- transfers (transfer.cc) ---
int read_at(FileHandle& handle, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
            MPI_Status* status);
int read_at_all(FileHandle& handle, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
                MPI_Status* status);
int write_at(FileHandle& handle, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
             MPI_Status* status);
int write_at_all(FileHandle& handle, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                 MPI_Status* status);
int read(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int read_all(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int write(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int write_all(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int read_shared(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int write_shared(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int read_ordered(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int write_ordered(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);

// --- nonblocking (nonblocking.cc) ---
int iread_at(FileHandle& handle, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
             MPI_Request* request);
int iwrite_at(FileHandle& handle, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
              MPI_Request* request);
int iread_at_all(FileHandle& handle, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
                 MPI_Request* request);
int iwrite_at_all(FileHandle& handle, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                  MPI_Request* request);
int iread(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int iwrite(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int iread_all(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int iwrite_all(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int iread_shared(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int iwrite_shared(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);

// --- split collective (split.cc) ---
int read_at_all_begin(FileHandle& handle, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype);
int read_at_all_end(FileHandle& handle, void* buf, MPI_Status* status);
int write_at_all_begin(FileHandle& handle, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype);
int write_at_all_end(FileHandle& handle, const void* buf, MPI_Status* status);
int read_all_begin(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype);
int read_all_end(FileHandle& handle, void* buf, MPI_Status* status);
int write_all_begin(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype);
int write_all_end(FileHandle& handle, const void* buf, MPI_Status* status);
int read_ordered_begin(FileHandle& handle, void* buf, MPI_Count count, MPI_Datatype datatype);
int read_ordered_end(FileHandle& handle, void* buf, MPI_Status* status);
int write_ordered_begin(FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype);
int write_ordered_end(FileHandle& handle, const void* buf, MPI_Status* status);

}  // namespace spillway::mpi::calls
