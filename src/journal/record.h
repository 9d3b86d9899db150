#pragma once

#include <cstdint>
#include <functional>

#include "base/status.h"
#include "journal/journal.h"
#include "journal/node.h"

// Reading records where they lie: the same code serves the owner, the other ranks of the node and recovery.
namespace spillway::journal {

[[nodiscard]] std::uint64_t record_header_hash(const RecordHeader& header);

// The word counts a team's commits and may wrap (comm/team.h).
[[nodiscard]] bool team_has_committed(const void* word, std::uint32_t number);

// Of a record that is known to be sound.
[[nodiscard]] RecordView record_view(std::byte* at);

// Calls visit for every record of a segment, first to last; stops when visit returns false. Nothing is taken on trust: a header
// that does not check ends the walk.  Fails: corrupt, naming the place.
struct SegmentBytes {
  std::byte* data = nullptr;
  std::uint64_t tail = 0;
  std::uint64_t size = 0;
};
Status walk_segment(const SegmentBytes& segment,
                    const std::function<bool(const RecordView&, std::uint64_t offset)>& visit);

}  // namespace spillway::journal
