#pragma once

#include <memory>

#include "base/config.h"
#include "storage/backend.h"

namespace spillway::storage {

// Files of the operating system. Page-aligned pieces of at least kDirectBytesMin are written with O_DIRECT where
// `direct` asks for it, or, when automatic, on the file systems on which docs/adr/0005 found it to cost less of the compute
// cores; everything else goes through the page cache. A file system that refuses a direct write is not asked again.
std::unique_ptr<Backend> make_posix_backend(base::DirectIo direct);

inline constexpr std::int64_t kDirectAlignment = 4096;
inline constexpr std::int64_t kDirectBytesMin = 256 * 1024;

}  // namespace spillway::storage
