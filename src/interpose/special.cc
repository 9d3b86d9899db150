#include "interpose/special.h"

#include "mpi/errhandler.h"
#include "mpi/process.h"
#include "posix/arrivals.h"

namespace spillway::interpose::special {

// Each looks its successor up once, at its first call: then there is an MPI to find it in.
#define SPILLWAY_NEXT(name) next<decltype(&::name)>(#name)

int MPI_File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
  static const auto below = SPILLWAY_NEXT(MPI_File_open);
  return guarded([&] {
    const int error = mpi::calls::open(comm, filename, amode, info, fh, below);
    if (journal::Node* node = mpi::Process::instance().node(); node != nullptr) posix::watch(*node);
    return error;
  });
}

int MPI_File_close(MPI_File* fh) {
  if (fh != nullptr) {
    if (mpi::FileHandle* handle = mpi::find_handle(*fh)) return guarded([&] { return mpi::calls::close(*handle, fh); });
  }
  static const auto below = SPILLWAY_NEXT(MPI_File_close);
  return below(fh);
}

int MPI_File_delete(const char* filename, MPI_Info info) {
  static const auto below = SPILLWAY_NEXT(MPI_File_delete);
  return guarded([&] { return mpi::calls::remove(filename, info, below); });
}

int MPI_File_create_errhandler(MPI_File_errhandler_function* function, MPI_Errhandler* errhandler) {
  if (mpi::api_or_null() == nullptr) {
    static const auto below = SPILLWAY_NEXT(MPI_File_create_errhandler);
    return below(function, errhandler);
  }
  return guarded([&] { return mpi::create_errhandler(function, errhandler); });
}

int MPI_Errhandler_free(MPI_Errhandler* errhandler) {
  if (mpi::api_or_null() == nullptr) {
    static const auto below = SPILLWAY_NEXT(MPI_Errhandler_free);
    return below(errhandler);
  }
  return guarded([&] { return mpi::free_errhandler(errhandler); });
}

// What the MPI does meanwhile, attributes of MPI_COMM_SELF for example, is the program's: not guarded.
int MPI_Finalize() {
  static const auto below = SPILLWAY_NEXT(MPI_Finalize);
  const int error = below();
  guarded([] {
    mpi::Process::instance().finish();
    return MPI_SUCCESS;
  });
  return error;
}

MPI_Fint MPI_File_c2f(MPI_File fh) {
  if (mpi::FileHandle* handle = mpi::find_handle(fh)) return mpi::to_fortran(*handle);
  static const auto below = SPILLWAY_NEXT(MPI_File_c2f);
  return below(fh);
}

MPI_File MPI_File_f2c(MPI_Fint fh) {
  if (mpi::FileHandle* handle = mpi::from_fortran(fh)) return mpi::to_mpi(handle);
  static const auto below = SPILLWAY_NEXT(MPI_File_f2c);
  return below(fh);
}

// MPI-5's names for the same; an older MPI has only the Fortran ones.
int MPI_File_toint(MPI_File fh) { return special::MPI_File_c2f(fh); }
MPI_File MPI_File_fromint(int fh) { return special::MPI_File_f2c(fh); }

#undef SPILLWAY_NEXT

}  // namespace spillway::interpose::special
