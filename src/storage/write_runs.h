#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "extent/extent.h"
#include "storage/backend.h"

namespace spillway::storage {

// Writes the bytes of `runs`, which lie packed in file order: a request for each run.  Fails: as the first request that does.
Status write_runs(File& file, std::span<const extent::Extent> runs, const std::byte* packed);

}  // namespace spillway::storage
