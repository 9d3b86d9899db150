#include "journal/record.h"

#include <atomic>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace spillway::journal {

std::uint64_t record_header_hash(const RecordHeader& header) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, &header, offsetof(RecordHeader, header_hash));
  XXH3_64bits_update(&state, &header + 1, header.run_count * sizeof(extent::Extent));
  return XXH3_64bits_digest(&state);
}

bool team_has_committed(const void* word, std::uint32_t number) {
  const auto& count = *static_cast<const std::atomic<std::uint32_t>*>(word);
  return static_cast<std::int32_t>(count.load(std::memory_order_acquire) - number) >= 0;
}

RecordView record_view(std::byte* at) {
  auto* header = reinterpret_cast<RecordHeader*>(at);
  return {
      header, {reinterpret_cast<const extent::Extent*>(header + 1), header->run_count}, at + header->payload_offset};
}

namespace {

// Whether a header found at `room` bytes before the tail describes a record that lies inside.
bool sound(const RecordHeader& header, std::uint64_t room) {
  if (header.magic != kRecordMagic || header.run_count == 0) return false;
  if (header.record_bytes < sizeof(RecordHeader) || header.record_bytes > room ||
      header.record_bytes % kRecordAlignment != 0)
    return false;
  const std::uint64_t table_end = sizeof(RecordHeader) + std::uint64_t{header.run_count} * sizeof(extent::Extent);
  if (header.payload_offset < table_end || header.payload_offset > header.record_bytes) return false;
  if (header.payload_bytes > header.record_bytes - header.payload_offset) return false;
  if (header.header_hash != record_header_hash(header)) return false;
  // The runs carry exactly the payload, in file order.
  const auto* runs = reinterpret_cast<const extent::Extent*>(&header + 1);
  std::uint64_t bytes = 0;
  std::int64_t previous_end = 0;
  for (std::uint32_t i = 0; i < header.run_count; ++i) {
    if (runs[i].length <= 0 || runs[i].offset < previous_end || runs[i].offset > INT64_MAX - runs[i].length)
      return false;
    previous_end = runs[i].end();
    bytes += static_cast<std::uint64_t>(runs[i].length);
    if (bytes > header.payload_bytes) return false;
  }
  return bytes == header.payload_bytes;
}

}  // namespace

Status walk_segment(const SegmentBytes& segment,
                    const std::function<bool(const RecordView&, std::uint64_t offset)>& visit) {
  if (segment.tail > segment.size)
    return Status(Code::corrupt, fmt::format("a segment's tail {} lies beyond its end", segment.tail));
  std::uint64_t offset = 0;
  while (offset < segment.tail) {
    std::byte* at = segment.data + offset;
    if (segment.tail - offset < sizeof(RecordHeader) ||
        !sound(*reinterpret_cast<const RecordHeader*>(at), segment.tail - offset)) {
      return Status(Code::corrupt, fmt::format("the record at {} of its segment does not check", offset));
    }
    const RecordView record = record_view(at);
    if (!visit(record, offset)) return {};
    offset += record.header->record_bytes;
  }
  return {};
}

}  // namespace spillway::journal
