#pragma once

#include <atomic>

#include "journal/node.h"

// After a deferred close the program, or one that it starts, may look at the file by other means than MPI-IO. The libc calls by which it
// would notice wait until what is pending for the file on this node has arrived (docs/consistency.md).
namespace spillway::posix {

// From now on there may be something to wait for. The node's tables stay mapped for ever.
void watch(journal::Node& node);

// Whether anything is pending on the node at all: all that an ordinary call costs.
[[nodiscard]] bool anything_pending();

// Wait until nothing is pending for the file that this name, or descriptor, leads to; for any file. They return at once when that is so,
// when there is no such file, and inside Spillway. Bytes that cannot be written, or whose process has died, are not waited for.
// Threads: any.  Blocks: on the drains of this node.  errno is left alone.
void await_path(int directory, const char* path);
void await_descriptor(int descriptor);
void await_all();

// The file has a new name: where recovery will look for it. Called before the rename, with the names as given.
class RenameNote {
 public:
  RenameNote(int old_directory, const char* old_path, int new_directory, const char* new_path);
  // The rename succeeded.
  void done() const;

 private:
  std::uint32_t slot_ = journal::kNone;
  std::string new_path_;
};

}  // namespace spillway::posix
