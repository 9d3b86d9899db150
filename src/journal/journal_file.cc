#include "journal/journal_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/units.h"

namespace spillway::journal {
namespace {

struct FileLayout {
  std::uint64_t segments_offset;
  std::uint64_t data_offset;
  std::uint64_t segment_bytes;
  std::uint64_t file_bytes;
  std::uint32_t segment_count;
};

FileLayout layout_for(std::int64_t segment_payload_bytes, std::int64_t capacity_bytes, std::int64_t scratch_bytes) {
  FileLayout layout{};
  const std::int64_t scratch = base::round_up(scratch_bytes, segment_payload_bytes);
  layout.segment_count =
      static_cast<std::uint32_t>((std::max(capacity_bytes, segment_payload_bytes) + scratch) / segment_payload_bytes);
  layout.segment_count = std::max(layout.segment_count, kReservedSegments);
  layout.segment_bytes =
      base::round_up(static_cast<std::uint64_t>(segment_payload_bytes), kPageBytes) + kSegmentSlackBytes;
  const std::uint64_t pending_end = kPageBytes + kFilesMax * sizeof(FilePending);
  layout.segments_offset = base::round_up(pending_end, kPageBytes);
  layout.data_offset =
      base::round_up(layout.segments_offset + layout.segment_count * sizeof(SegmentDescriptor), kPageBytes);
  layout.file_bytes = layout.data_offset + layout.segment_count * layout.segment_bytes;
  return layout;
}

Result<base::Mapping> make_file(const std::string& path, const JournalOptions& options, FileLayout& layout) {
  base::UniqueFd fd = base::above_stdio(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return Status::from_errno(errno, "create").on_path(path);
  // As long as this lock is held the journal has an owner; it goes with the process, however that ends. Not inherited by fork.
  struct flock request {};
  request.l_type = F_WRLCK;
  request.l_whence = SEEK_SET;
  if (fcntl(fd.get(), F_SETLK, &request) != 0) return Status::from_errno(errno, "lock").on_path(path);
  // Address space may be limited where memory is not: take what can be had.
  for (std::int64_t capacity = options.capacity_bytes;; capacity /= 2) {
    layout = layout_for(options.segment_payload_bytes, capacity, options.scratch_bytes);
    if (ftruncate(fd.get(), static_cast<off_t>(layout.file_bytes)) != 0)
      return Status::from_errno(errno, "size").on_path(path);
    Result<base::Mapping> mapping = base::Mapping::map(std::move(fd), layout.file_bytes);
    if (mapping.ok() || capacity < options.segment_payload_bytes) return mapping;
    fd = base::above_stdio(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!fd.valid() || fcntl(fd.get(), F_SETLK, &request) != 0) return Status::from_errno(errno, "open").on_path(path);
  }
}

}  // namespace

Result<base::Mapping> create_journal_file(const std::string& path, std::uint32_t process,
                                          const JournalOptions& options) {
  FileLayout layout{};
  Result<base::Mapping> mapping = make_file(path, options, layout);
  Status ready = mapping.status();
  if (ready.ok()) ready = mapping->populate(0, layout.data_offset + kReservedSegments * layout.segment_bytes);
  if (!ready) {
    unlink(path.c_str());
    return ready.on_path(path);
  }
  JournalHeader& header = *reinterpret_cast<JournalHeader*>(mapping->data());
  header.version = kVersion;
  header.process = process;
  header.rank = options.rank;
  header.pid = static_cast<std::uint32_t>(getpid());
  header.segment_bytes = layout.segment_bytes;
  header.segment_count = layout.segment_count;
  header.pending_offset = kPageBytes;
  header.segments_offset = layout.segments_offset;
  header.data_offset = layout.data_offset;
  header.magic = kJournalMagic;
  return mapping;
}

Status check_journal_file(const base::Mapping& mapping, std::uint32_t process) {
  const Status corrupt(Code::corrupt, "the header of the journal does not check");
  if (mapping.size() < sizeof(JournalHeader)) return corrupt;
  const JournalHeader& header = *reinterpret_cast<const JournalHeader*>(mapping.data());
  if (header.magic != kJournalMagic || header.version != kVersion || header.process != process) return corrupt;
  const auto aligned = [](std::uint64_t offset) { return offset % kPageBytes == 0; };
  if (!aligned(header.pending_offset) || !aligned(header.segments_offset) || !aligned(header.data_offset) ||
      !aligned(header.segment_bytes) || header.segment_bytes == 0)
    return corrupt;
  // In this order, so that no sum can overflow.
  if (header.data_offset > mapping.size() || header.segments_offset > header.data_offset ||
      header.pending_offset > header.segments_offset || header.pending_offset < sizeof(JournalHeader))
    return corrupt;
  if (header.segments_offset - header.pending_offset < kFilesMax * sizeof(FilePending)) return corrupt;
  if ((header.data_offset - header.segments_offset) / sizeof(SegmentDescriptor) < header.segment_count) return corrupt;
  if ((mapping.size() - header.data_offset) / header.segment_bytes < header.segment_count) return corrupt;
  return {};
}

}  // namespace spillway::journal
