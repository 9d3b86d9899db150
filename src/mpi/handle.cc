#include "mpi/handle.h"

#include <cstring>
#include <unordered_set>
#include <vector>

#include "mpi/api.h"
#include "mpi/error_class.h"

namespace spillway::mpi {
namespace {

// MPICH counts from 1 or 0x1001, Open MPI from 0: far below.
constexpr int kFortranBase = 0x53500000;
// Open MPI pads its predefined objects to this size.
[[maybe_unused]] constexpr std::size_t kPredefinedBytes = 1536;

struct Registry {
  base::Mutex mutex;
  std::unordered_set<FileHandle*> handles SPILLWAY_GUARDED_BY(mutex);
  std::vector<FileHandle*> fortran SPILLWAY_GUARDED_BY(mutex);
};

Registry& registry() {
  static Registry* instance = new Registry();  // as long as the process
  return *instance;
}

}  // namespace

MPI_File to_mpi(FileHandle* handle) { return reinterpret_cast<MPI_File>(handle); }

FileHandle* find_handle(MPI_File file) {
  auto* handle = reinterpret_cast<FileHandle*>(file);
  base::MutexLock lock(registry().mutex);
  return registry().handles.count(handle) != 0 ? handle : nullptr;
}

bool any_handle() {
  base::MutexLock lock(registry().mutex);
  return !registry().handles.empty();
}

void register_handle(std::unique_ptr<FileHandle> handle, MPI_File* file) {
  if (api().file_null_object != nullptr) std::memcpy(handle->foreign, api().file_null_object, kPredefinedBytes);
  *file = to_mpi(handle.get());
  base::MutexLock lock(registry().mutex);
  registry().handles.insert(handle.release());
}

std::unique_ptr<FileHandle> take_handle(MPI_File file) {
  auto* handle = reinterpret_cast<FileHandle*>(file);
  base::MutexLock lock(registry().mutex);
  registry().handles.erase(handle);
  if (handle->fortran_index >= 0) registry().fortran[static_cast<std::size_t>(handle->fortran_index)] = nullptr;
  return std::unique_ptr<FileHandle>(handle);
}

int to_fortran(FileHandle& handle) {
  base::MutexLock lock(registry().mutex);
  std::vector<FileHandle*>& table = registry().fortran;
  if (handle.fortran_index < 0) {
    std::size_t free = 0;
    while (free < table.size() && table[free] != nullptr) ++free;
    if (free == table.size()) table.push_back(nullptr);
    table[free] = &handle;
    handle.fortran_index = static_cast<int>(free);
  }
  return kFortranBase + handle.fortran_index;
}

FileHandle* from_fortran(int index) {
  base::MutexLock lock(registry().mutex);
  const std::vector<FileHandle*>& table = registry().fortran;
  const int at = index - kFortranBase;
  return at >= 0 && static_cast<std::size_t>(at) < table.size() ? table[static_cast<std::size_t>(at)] : nullptr;
}

int finish_call(FileHandle& handle, const Status& status) {
  if (status.ok()) return MPI_SUCCESS;
  return invoke(handle.handler, to_mpi(&handle), error_class(status.code()));
}

}  // namespace spillway::mpi
