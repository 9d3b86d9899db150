#include "mpi/error_class.h"

#include <mpi.h>

namespace spillway::mpi {

int error_class(Code code) {
  switch (code) {
    case Code::ok:
      return MPI_SUCCESS;
    case Code::bad_argument:
      return MPI_ERR_ARG;
    case Code::bad_count:
      return MPI_ERR_COUNT;
    case Code::unsupported:
      return MPI_ERR_UNSUPPORTED_OPERATION;
    case Code::not_same:
      return MPI_ERR_NOT_SAME;
    case Code::bad_file_name:
      return MPI_ERR_BAD_FILE;
    case Code::no_such_file:
      return MPI_ERR_NO_SUCH_FILE;
    case Code::file_exists:
      return MPI_ERR_FILE_EXISTS;
    case Code::access_denied:
      return MPI_ERR_ACCESS;
    case Code::read_only:
      return MPI_ERR_READ_ONLY;
    case Code::file_in_use:
      return MPI_ERR_FILE_IN_USE;
    case Code::bad_mode:
      return MPI_ERR_AMODE;
    case Code::bad_type:
      return MPI_ERR_TYPE;
    case Code::bad_datarep:
      return MPI_ERR_UNSUPPORTED_DATAREP;
    case Code::no_memory:
      return MPI_ERR_NO_MEM;
    case Code::quota:
      return MPI_ERR_QUOTA;
    case Code::no_space:
      return MPI_ERR_NO_SPACE;
    case Code::would_block:
    case Code::corrupt:
    case Code::peer_lost:
    case Code::io:
      return MPI_ERR_IO;
    case Code::internal:
      return MPI_ERR_INTERN;
  }
  return MPI_ERR_OTHER;
}

}  // namespace spillway::mpi
