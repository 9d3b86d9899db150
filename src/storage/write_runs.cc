#include "storage/write_runs.h"

#include <sys/uio.h>

namespace spillway::storage {

Status write_runs(File& file, std::span<const extent::Extent> runs, const std::byte* packed) {
  for (const extent::Extent& run : runs) {
    const iovec piece{const_cast<std::byte*>(packed), static_cast<std::size_t>(run.length)};
    if (Status status = file.write(run.offset, {&piece, 1}); !status) return status;
    packed += run.length;
  }
  return {};
}

}  // namespace spillway::storage
