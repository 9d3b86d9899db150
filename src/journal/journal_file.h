#pragma once

#include <cstdint>
#include <string>

#include "base/mapping.h"
#include "base/status.h"
#include "journal/layout.h"

namespace spillway::journal {

struct JournalOptions {
  std::int64_t segment_payload_bytes = 4 << 20;  // the largest record payload: the drain's piece (ABT §3.2)
  std::int64_t capacity_bytes = 0;               // upper bound of any limit; address space only
  std::int64_t scratch_bytes = 16 << 20;         // for scratch records, beside the limit
  int rank = 0;
};

// Pages taken before anything else: one segment for records, one for scratch. With them every write can be finished, however full
// shared memory becomes.
inline constexpr std::uint32_t kReservedSegments = 2;

// Makes the journal file of a process, with its header and tables in place, the first kReservedSegments segments populated, and
// locked by the caller's process for as long as that lives. A failure leaves no file.  Fails: no_space, from the system.
Result<base::Mapping> create_journal_file(const std::string& path, std::uint32_t process,
                                          const JournalOptions& options);

// Whether a file made by another process can be read as the journal of `process`: its header is this version's, and the tables and
// segments that it describes lie inside the file. Their contents are another matter.  Fails: corrupt.
Status check_journal_file(const base::Mapping& mapping, std::uint32_t process);

}  // namespace spillway::journal
