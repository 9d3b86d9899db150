#include "mpi/api.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/log.h"

namespace spillway::mpi {
namespace {

bool is_mpi_library(const char* path) {
  const char* slash = std::strrchr(path, '/');
  const std::string name = slash != nullptr ? slash + 1 : path;
  return name.rfind("libmpi.so", 0) == 0 || name.rfind("libmpich.so", 0) == 0 || name.rfind("libmpi_abi.so", 0) == 0 ||
         name.rfind("libpmpi.so", 0) == 0;
}

// The MPI library as the dynamic loader knows it: in the global scope, or opened locally by somebody (Python).
void* find_library() {
  // Behind us, never RTLD_DEFAULT: some of what we look for we define ourselves.
  if (dlsym(RTLD_NEXT, "PMPI_Comm_rank") != nullptr) return RTLD_NEXT;
  std::vector<std::string> candidates;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        if (info->dlpi_name != nullptr && is_mpi_library(info->dlpi_name)) {
          static_cast<std::vector<std::string>*>(data)->emplace_back(info->dlpi_name);
        }
        return 0;
      },
      &candidates);
  for (const std::string& path : candidates) {
    void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr && dlsym(handle, "PMPI_Comm_rank") != nullptr) return handle;
  }
  return nullptr;
}

void* library() {
  // Looked for until there is one: Python may open it long after we were loaded.
  static void* handle = nullptr;
  if (handle == nullptr) handle = find_library();
  return handle;
}

template <typename Function>
bool resolve(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library(), name));
  return function != nullptr;
}

#if defined(OPEN_MPI)
template <typename Handle>
bool resolve_object(Handle& handle, const char* name) {
  // A program that was not built as position-independent code has the object copied into itself; MPI uses that copy too. Only the search
  // that begins at the program finds it.
  handle = static_cast<Handle>(dlsym(library() == RTLD_NEXT ? RTLD_DEFAULT : library(), name));
  return handle != nullptr;
}

bool resolve_constants(Api& api) {
  if (!resolve_object(api.comm_world, "ompi_mpi_comm_world") || !resolve_object(api.comm_self, "ompi_mpi_comm_self") ||
      !resolve_object(api.comm_null, "ompi_mpi_comm_null") || !resolve_object(api.byte, "ompi_mpi_byte") ||
      !resolve_object(api.int64, "ompi_mpi_int64_t") || !resolve_object(api.datatype_null, "ompi_mpi_datatype_null") ||
      !resolve_object(api.errhandler_null, "ompi_mpi_errhandler_null") ||
      !resolve_object(api.errors_return, "ompi_mpi_errors_return") ||
      !resolve_object(api.errors_are_fatal, "ompi_mpi_errors_are_fatal") ||
      !resolve_object(api.file_null, "ompi_mpi_file_null") ||
      !resolve_object(api.group_empty, "ompi_mpi_group_empty") ||
      !resolve_object(api.info_null, "ompi_mpi_info_null") || !resolve_object(api.sum, "ompi_mpi_op_sum") ||
      !resolve_object(api.replace, "ompi_mpi_op_replace") || !resolve_object(api.no_op, "ompi_mpi_op_no_op") ||
      !resolve_object(api.request_null, "ompi_request_null")) {
    return false;
  }
  api.file_null_object = api.file_null;
  return true;
}
constexpr const char* kFamily = "Open MPI";
#else
bool resolve_constants(Api& api) {
  if (dlsym(library(), "ompi_mpi_comm_self") != nullptr) return false;  // another family's library
  api.comm_world = MPI_COMM_WORLD;
  api.comm_self = MPI_COMM_SELF;
  api.comm_null = MPI_COMM_NULL;
  api.byte = MPI_BYTE;
  api.int64 = MPI_INT64_T;
  api.datatype_null = MPI_DATATYPE_NULL;
  api.errhandler_null = MPI_ERRHANDLER_NULL;
  api.errors_return = MPI_ERRORS_RETURN;
  api.errors_are_fatal = MPI_ERRORS_ARE_FATAL;
  api.file_null = MPI_FILE_NULL;
  api.group_empty = MPI_GROUP_EMPTY;
  api.info_null = MPI_INFO_NULL;
  api.sum = MPI_SUM;
  api.replace = MPI_REPLACE;
  api.no_op = MPI_NO_OP;
  api.request_null = MPI_REQUEST_NULL;
  return true;
}
constexpr const char* kFamily = "MPICH";
#endif

bool resolve_all(Api& api) {
  bool good = true;
#define SPILLWAY_MPI_RESOLVE(name) good = resolve(api.name, "PMPI_" #name) && good;
  SPILLWAY_MPI_FUNCTIONS(SPILLWAY_MPI_RESOLVE)
#undef SPILLWAY_MPI_RESOLVE
#if MPI_VERSION >= 4
  // An older library of the same ABI may lack them; its types then have no large counts either.
  (void)resolve(api.Type_get_envelope_c, "PMPI_Type_get_envelope_c");
  (void)resolve(api.Type_get_contents_c, "PMPI_Type_get_contents_c");
#endif
  return good && resolve_constants(api);
}

}  // namespace

const Api* api_or_null() {
  if (library() == nullptr) return nullptr;
  static Api table;
  static const bool good = resolve_all(table);
  static const bool said = [] {
    if (!good) {
      base::log_error(std::string("this library is for ") + kFamily +
                      "; the program runs another MPI. Its files are left to that MPI; use `spillway run`, which picks "
                      "the right one");
    }
    return true;
  }();
  (void)said;
  return good ? &table : nullptr;
}

const Api& api() { return *api_or_null(); }

void* next_function(const char* name) {
  // Behind us in the global scope first, so that other tools in LD_PRELOAD keep their turn.
  void* function = dlsym(RTLD_NEXT, name);
  if (function == nullptr && library() != nullptr && library() != RTLD_NEXT) function = dlsym(library(), name);
  return function;
}

}  // namespace spillway::mpi
