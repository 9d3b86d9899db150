#pragma once

#include <cstddef>
#include <cstdint>

namespace spillway::view {

// Copies `count` pieces of `length` bytes; the pieces advance by their strides (bytes). One loop per common piece size, so
// that 8-byte pieces move at register speed; memcpy for long pieces. The ranges of source and destination do not overlap.
// Threads: any.
void copy_strided(std::byte* destination, std::int64_t destination_stride, const std::byte* source,
                  std::int64_t source_stride, std::int64_t length, std::int64_t count);

}  // namespace spillway::view
