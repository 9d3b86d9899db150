#include "mpi/errhandler.h"

#include <fmt/format.h>

#include <unordered_map>

#include "base/inside.h"
#include "base/log.h"
#include "base/mutex.h"
#include "mpi/api.h"
#include "mpi/error_class.h"

namespace spillway::mpi {
namespace {

struct Known {
  MPI_File_errhandler_function* function = nullptr;  // null: predefined, or not made through us
  int handed_out = 0;                                // by get_handler, and not given back
  int uses = 0;                                      // files of ours
  bool free_later = false;                           // the program gave its own up while it was in use

  [[nodiscard]] bool unused() const { return uses == 0 && handed_out == 0; }
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
  table().known[*handle] = {.function = function};
  return error;
}

int free_errhandler(MPI_Errhandler* handle) {
  {
    base::MutexLock lock(table().mutex);
    const auto found = table().known.find(*handle);
    if (found != table().known.end()) {
      Known& known = found->second;
      // Which of several equal references this is does not matter; ours go first.
      const bool ours = known.handed_out > 0;
      if (ours) --known.handed_out;
      if (!ours && known.uses > 0 && known.function != nullptr) known.free_later = true;
      const bool last = known.free_later && known.unused();
      if ((ours || known.free_later) && !last) {
        *handle = api().errhandler_null;
        return MPI_SUCCESS;
      }
      if (known.unused()) table().known.erase(found);
    }
  }
  return free_below(handle);
}

ErrorHandler use_handler(MPI_Errhandler handle) {
  base::MutexLock lock(table().mutex);
  Known& known = table().known[handle];
  ++known.uses;
  return {handle, known.function};
}

void release_handler(ErrorHandler& handler) {
  bool free_now = false;
  {
    base::MutexLock lock(table().mutex);
    const auto found = table().known.find(handler.handle);
    if (found == table().known.end()) return;
    --found->second.uses;
    free_now = found->second.unused() && found->second.free_later;
    if (free_now) table().known.erase(found);
  }
  if (free_now) free_below(&handler.handle);
  handler = {};
}

MPI_Errhandler get_handler(const ErrorHandler& handler) {
  base::MutexLock lock(table().mutex);
  ++table().known[handler.handle].handed_out;
  return handler.handle;
}

ErrorHandler inherited_handler() {
  MPI_Errhandler handle = api().errors_return;
  if (api().File_get_errhandler(api().file_null, &handle) != MPI_SUCCESS) return use_handler(api().errors_return);
  const ErrorHandler handler = use_handler(handle);
  free_below(&handle);  // the reference that we got; the program's own keeps the handler alive, and ours now does
  return handler;
}

int invoke(const ErrorHandler& handler, MPI_File file, int error) {
  if (error == MPI_SUCCESS || handler.handle == api().errors_return) return error;
  if (handler.function != nullptr) {
    const base::Outside outside;
    handler.function(&file, &error);
    return error;
  }
  // MPI_ERRORS_ARE_FATAL and its kin, chosen by the program: MPI's to carry out.
  base::log_error(fmt::format(
      "an operation on a file failed with error class {}, and its error handler says that this is fatal", error));
  api().Abort(api().comm_world, error);
  return error;
}

int invoke_on_null(const Status& status) {
  const int error = error_class(status.code());
  ErrorHandler handler = inherited_handler();
  const bool known =
      handler.function != nullptr || handler.handle == api().errors_return || handler.handle == api().errors_are_fatal;
  // The MPI's own call is for handlers that were not made through us only: Open MPI takes MPI_FILE_NULL there for a mistake, which is fatal.
  const int result = known ? invoke(handler, api().file_null, error) : error;
  if (!known) api().File_call_errhandler(api().file_null, error);
  release_handler(handler);
  return result;
}

}  // namespace spillway::mpi
