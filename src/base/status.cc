#include "base/status.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace spillway::base {
namespace {

struct CodeName {
  Code code;
  std::string_view name;
};
constexpr CodeName kCodeNames[] = {
    {Code::ok, "ok"},
    {Code::would_block, "would_block"},
    {Code::bad_argument, "bad_argument"},
    {Code::bad_count, "bad_count"},
    {Code::unsupported, "unsupported"},
    {Code::not_same, "not_same"},
    {Code::bad_file_name, "bad_file_name"},
    {Code::no_such_file, "no_such_file"},
    {Code::file_exists, "file_exists"},
    {Code::access_denied, "access_denied"},
    {Code::read_only, "read_only"},
    {Code::file_in_use, "file_in_use"},
    {Code::bad_mode, "bad_mode"},
    {Code::bad_type, "bad_type"},
    {Code::bad_datarep, "bad_datarep"},
    {Code::no_memory, "no_memory"},
    {Code::quota, "quota"},
    {Code::no_space, "no_space"},
    {Code::corrupt, "corrupt"},
    {Code::peer_lost, "peer_lost"},
    {Code::io, "io"},
    {Code::internal, "internal"},
};

}  // namespace

std::string_view name_of(Code code) {
  for (const CodeName& entry : kCodeNames) {
    if (entry.code == code) return entry.name;
  }
  return "unknown";
}

Code code_of_errno(int errno_value) {
  switch (errno_value) {
    case 0:
      return Code::ok;
    case EAGAIN:
      return Code::would_block;
    case ENOENT:
      return Code::no_such_file;
    case EEXIST:
      return Code::file_exists;
    case EACCES:
    case EPERM:
      return Code::access_denied;
    case EROFS:
      return Code::read_only;
    case ENAMETOOLONG:
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
      return Code::bad_file_name;
    case ETXTBSY:
      return Code::file_in_use;
    case ENOMEM:
      return Code::no_memory;
    case ENOSPC:
    case EFBIG:
      return Code::no_space;
    case EDQUOT:
      return Code::quota;
    case EINVAL:
      return Code::bad_argument;
    case EOPNOTSUPP:
    case ENOSYS:
      return Code::unsupported;
    default:
      return Code::io;
  }
}

Status Status::from_errno(int errno_value, std::string_view what) {
  char buffer[128];
  // GNU strerror_r: thread-safe, and it may return a static text instead of the buffer.
  const char* text = strerror_r(errno_value, buffer, sizeof buffer);
  Status status(code_of_errno(errno_value), fmt::format("{}: {}", what, text));
  status.errno_ = errno_value;
  return status;
}

Status& Status::at_offset(std::int64_t offset) {
  if (!ok() && offset_ < 0) offset_ = offset;
  return *this;
}

Status& Status::on_path(std::string_view path) {
  if (!ok() && what_.find(path) == std::string::npos) what_ += fmt::format(" ({})", path);
  return *this;
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  if (offset_ < 0) return fmt::format("{}: {}", name_of(code_), what_);
  return fmt::format("{}: {} (offset {})", name_of(code_), what_, offset_);
}

}  // namespace spillway::base
