#include "mpi/errhandler.h"

#include <unordered_map>

#include <fmt/format.h>

#include "base/log.h"
#include "base/mutex.h"
#include "mpi/api.h"
#include "mpi/error_class.h"

namespace spillway::mpi {
namespace {

struct Known {
  MPI_File_errhandler_function* function = nullptr;
  int references = 1;  // handles that the program holds
  int uses = 0;        // files of ours
};

// MPICH's handles are numbers, Open MPI's pointers.
struct HandleHash {
  std::size_t operator()(MPI_Errhandler handle) const { return std::hash<MPI_Errhandler>()(handle); }
};

struct Table {
  base::Mutex mutex;
  std::unordered_map<MPI_Errhandler, Known, HandleHash> known SPILLWAY_GUARDED_BY(mutex);
};

Table& table() {
  static Table* instance = new Table();  // as long as the process: handlers may be freed at its very end
  return *instance;
}

// The MPI's own MPI_Errhandler_free, for a handler that nobody uses any more.
int free_below(MPI_Errhandler* handle) { return api().Errhandler_free(handle); }

}  // namespace

int create_errhandler(MPI_File_errhandler_function* function, MPI_Errhandler* handle) {
  const int error = api().File_create_errhandler(function, handle);
  if (error != MPI_SUCCESS) return error;
  base::MutexLock lock(table().mutex);
  table().known[*handle] = {function, 1, 0};
  return error;
}

int free_errhandler(MPI_Errhandler* handle) {
  {
    base::MutexLock lock(table().mutex);
    const auto found = table().known.find(*handle);
    if (found != table().known.end()) {
      if (--found->second.references > 0 || found->second.uses > 0) {
        *handle = api().errhandler_null;
        return MPI_SUCCESS;
      }
      table().known.erase(found);
    }
  }
  return free_below(handle);
}

ErrorHandler use_handler(MPI_Errhandler handle) {
  base::MutexLock lock(table().mutex);
  const auto found = table().known.find(handle);
  if (found == table().known.end()) return {handle, nullptr};
  ++found->second.uses;
  return {handle, found->second.function};
}

void release_handler(ErrorHandler& handler) {
  if (handler.function == nullptr) return;
  bool last = false;
  {
    base::MutexLock lock(table().mutex);
    const auto found = table().known.find(handler.handle);
    last = --found->second.uses == 0 && found->second.references <= 0;
    if (last) table().known.erase(found);
  }
  if (last) free_below(&handler.handle);
  handler = {};
}

MPI_Errhandler get_handler(const ErrorHandler& handler) {
  if (handler.function != nullptr) {
    base::MutexLock lock(table().mutex);
    ++table().known[handler.handle].references;
  }
  return handler.handle;
}

ErrorHandler inherited_handler() {
  MPI_Errhandler handle = api().errors_return;
  if (api().File_get_errhandler(api().file_null, &handle) != MPI_SUCCESS) return {api().errors_return, nullptr};
  const ErrorHandler handler = use_handler(handle);
  // What we got counts as a reference; the program's own keeps the handler alive, and ours now does.
  if (handler.function != nullptr) free_below(&handle);
  return handler;
}

int invoke(const ErrorHandler& handler, MPI_File file, int error) {
  if (error == MPI_SUCCESS || handler.handle == api().errors_return) return error;
  if (handler.function != nullptr) {
    handler.function(&file, &error);
    return error;
  }
  // MPI_ERRORS_ARE_FATAL and its kin, chosen by the program: MPI's to carry out.
  base::log_error(fmt::format("an operation on a file failed with error class {}, and its error handler says that this is fatal", error));
  api().Abort(api().comm_world, error);
  return error;
}

int invoke_on_null(const Status& status) {
  const int error = error_class(status.code());
  api().File_call_errhandler(api().file_null, error);
  return error;
}

}  // namespace spillway::mpi
