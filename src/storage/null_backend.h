#pragma once

#include <memory>

#include "storage/backend.h"

namespace spillway::storage {

// Swallows every write and reads zeros; remembers each path's size and nothing else. For measuring what lies above the
// storage.
std::unique_ptr<Backend> make_null_backend();

}  // namespace spillway::storage
