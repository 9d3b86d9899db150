#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "file/open_file.h"
#include "mpi/datatype.h"
#include "mpi/errhandler.h"

namespace spillway::mpi {

enum class Datarep { native, internal, external32 };

// A managed file as the program holds it: MPI_File is a pointer to one of these (docs/adr/0002).
class FileHandle {
 public:
  // The pointer means something to the MPI only by mistake; these bytes make such a mistake end in an error instead of a crash.
  static constexpr std::size_t kForeignBytes = 4096;
  std::byte foreign[kForeignBytes] = {};

  // One call at a time, also from a program with several threads. The one lock that is held across I/O: it stands for the order that
  // MPI gives to the calls on a handle.
  base::Mutex mutex;
  std::unique_ptr<file::OpenFile> file;
  MPI_Group group{};
  int amode = 0;
  MPI_Datatype etype{};  // as the program gave them, or duplicates
  MPI_Datatype filetype{};
  Datarep datarep = Datarep::native;
  ErrorHandler handler;
  int fortran_index = -1;
  // Between the begin and the end of a split collective call.
  struct Split {
    const char* what = nullptr;
    const void* buffer = nullptr;
    std::int64_t bytes = 0;
  };
  std::optional<Split> split;
};

MPI_File to_mpi(FileHandle* handle);
// Ours, or null: any value may be asked for.
FileHandle* find_handle(MPI_File file);
[[nodiscard]] bool any_handle();

// Makes the handle known; forgets and deletes it.
void register_handle(std::unique_ptr<FileHandle> handle, MPI_File* file);
std::unique_ptr<FileHandle> take_handle(MPI_File file);

// Fortran's numbers for our handles; none of them is one of the MPI's.
int to_fortran(FileHandle& handle);
FileHandle* from_fortran(int index);

// What a call returns for a status: the error class, after the file's handler has seen it.
int finish_call(FileHandle& handle, const Status& status);

}  // namespace spillway::mpi
