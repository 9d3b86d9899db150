#include "mpi/buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "mpi/api.h"

namespace spillway::mpi {
namespace {

constexpr const char* kExternal32 = "external32";

}  // namespace

TransferBuffer::TransferBuffer(const FileHandle& handle, const void* buf, MPI_Count count, MPI_Datatype datatype,
                               bool writing) {
  if (count < 0) {
    status_ = Status(Code::bad_count, fmt::format("count {} is negative", static_cast<std::int64_t>(count)));
    return;
  }
  Result<std::shared_ptr<const Datatype>> type = decode(datatype);
  if (!type) {
    status_ = type.status();
    return;
  }
  type_ = *type;
  if (__builtin_mul_overflow(static_cast<std::int64_t>(count), type_->bytes, &bytes_)) {
    status_ = Status(Code::bad_count, "the transfer is larger than 2^63 bytes");
    bytes_ = 0;
    return;
  }
  auto* memory = static_cast<std::byte*>(const_cast<void*>(buf));
  layout_ = {memory, type_->pattern, type_->extent};
  if (handle.datarep != Datarep::external32 || bytes_ == 0) return;

  MPI_Aint external = 0;
  if (api().Pack_external_size(kExternal32, 1, datatype, &external) != MPI_SUCCESS || external != type_->bytes) {
    status_ =
        Status(Code::bad_datarep, "external32 is supported for datatypes that take as many bytes there as in memory");
    return;
  }
  converted_ = true;
  program_buffer_ = memory;
  datatype_ = datatype;
  packed_.resize(static_cast<std::size_t>(bytes_));
  if (writing) status_ = convert_for_write(buf);
  layout_ = view::MemoryLayout::contiguous_bytes(packed_.data(), bytes_);
}

Status TransferBuffer::convert_for_write(const void* buf) {
  const std::int64_t count = bytes_ / type_->bytes;
  for (std::int64_t done = 0; done < count;) {
    const int part = static_cast<int>(std::min<std::int64_t>(count - done, INT_MAX));
    const void* from = static_cast<const std::byte*>(buf) + done * type_->extent;
    MPI_Aint position = 0;
    const MPI_Aint room = part * type_->bytes;
    if (api().Pack_external(kExternal32, from, part, datatype_, packed_.data() + done * type_->bytes, room,
                            &position) != MPI_SUCCESS) {
      return Status(Code::io, "conversion to external32 failed");
    }
    done += part;
  }
  return {};
}

Status TransferBuffer::finish_read(std::int64_t bytes) {
  if (!converted_) return {};
  const std::int64_t count = (bytes + type_->bytes - 1) / type_->bytes;
  const std::int64_t missing = count * type_->bytes - bytes;
  if (missing > 0) {
    // The file ended in the midst of an element. MPI converts whole ones: what is missing comes from the program's memory.
    std::vector<std::byte> last(static_cast<std::size_t>(type_->bytes));
    const void* from = static_cast<const std::byte*>(program_buffer_) + (count - 1) * type_->extent;
    MPI_Aint position = 0;
    if (api().Pack_external(kExternal32, from, 1, datatype_, last.data(), type_->bytes, &position) != MPI_SUCCESS)
      return Status(Code::io, "conversion from external32 failed");
    std::copy(last.end() - missing, last.end(), packed_.begin() + bytes);
  }
  for (std::int64_t done = 0; done < count;) {
    const int part = static_cast<int>(std::min<std::int64_t>(count - done, INT_MAX));
    void* into = static_cast<std::byte*>(program_buffer_) + done * type_->extent;
    MPI_Aint position = 0;
    if (api().Unpack_external(kExternal32, packed_.data() + done * type_->bytes, part * type_->bytes, &position, into,
                              part, datatype_) != MPI_SUCCESS) {
      return Status(Code::io, "conversion from external32 failed");
    }
    done += part;
  }
  return {};
}

void set_status(MPI_Status* status, std::int64_t bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  api().Status_set_elements_x(status, api().byte, bytes);
  api().Status_set_cancelled(status, 0);
}

}  // namespace spillway::mpi
