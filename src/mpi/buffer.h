#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "mpi/datatype.h"
#include "mpi/handle.h"
#include "view/file_view.h"

namespace spillway::mpi {

// The memory of one transfer: (buf, count, datatype) as the program gave them, and in the file's data representation where that differs
// from memory's. Problems with the arguments are kept as a status: a collective call must still be made with it.
class TransferBuffer {
 public:
  TransferBuffer(const FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype, bool writing);

  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const view::MemoryLayout& layout() const { return layout_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

  // After a read of `bytes` bytes: brings them into the program's memory, where that has not happened by itself.
  Status finish_read(std::int64_t bytes);

 private:
  Status convert_for_write(const void* buf);

  Status status_;
  std::shared_ptr<const Datatype> type_;
  view::MemoryLayout layout_;
  std::int64_t bytes_ = 0;
  // external32 only:
  bool converted_ = false;
  void* program_buffer_ = nullptr;
  MPI_Datatype datatype_{};
  std::vector<std::byte> packed_;
};

// Fills in what MPI_Get_count and its kin read. `status` may be MPI_STATUS_IGNORE.
void set_status(MPI_Status* status, std::int64_t bytes);

}  // namespace spillway::mpi
