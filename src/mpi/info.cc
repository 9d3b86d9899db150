#include "mpi/info.h"

#include <string>
#include <vector>

#include "mpi/api.h"

namespace spillway::mpi {

void apply_info(file::Hints& hints, MPI_Info info) {
  if (info == api().info_null) return;
  int keys = 0;
  if (api().Info_get_nkeys(info, &keys) != MPI_SUCCESS) return;
  for (int i = 0; i < keys; ++i) {
    std::vector<char> key(MPI_MAX_INFO_KEY + 1);
    int length = 0;
    int found = 0;
    if (api().Info_get_nthkey(info, i, key.data()) != MPI_SUCCESS) continue;
    if (api().Info_get_valuelen(info, key.data(), &length, &found) != MPI_SUCCESS || found == 0) continue;
    std::vector<char> value(static_cast<std::size_t>(length) + 1);
    if (api().Info_get(info, key.data(), length, value.data(), &found) != MPI_SUCCESS || found == 0) continue;
    hints.set(key.data(), value.data());
  }
}

int make_info(const file::Hints& hints, MPI_Info* info) {
  int error = api().Info_create(info);
  for (const auto& [key, value] : hints.in_force()) {
    if (error != MPI_SUCCESS) break;
    // A value longer than this MPI can hold is cut: it is information, not an instruction.
    error = api().Info_set(*info, key.c_str(), value.substr(0, MPI_MAX_INFO_VAL - 1).c_str());
  }
  return error;
}

}  // namespace spillway::mpi
