// Proves that recovery survives any damage to the tables, headers and payloads that a job leaves behind, and writes nothing that no
// record holds. Each five bytes of input change one byte of the job's files, or cut a file short there.

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "drain/test_damaged_job.h"

using spillway::drain::DamagedJob;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static DamagedJob job("/dev/shm");
  if (size == 0) return 0;
  const spillway::drain::RecoveryOptions options{.dry_run = (data[0] & 7) == 0, .salvage = (data[0] & 8) != 0};
  std::vector<DamagedJob::Change> changes;
  for (std::size_t i = 1; i + 5 <= size && changes.size() < 16; i += 5) {
    DamagedJob::Change change;
    change.kind = data[i] == 0xff ? DamagedJob::Change::Kind::cut : DamagedJob::Change::Kind::flip;
    change.part = (data[i] + 256U * data[i + 1]) % job.part_count();
    change.offset = (data[i + 2] + 256U * data[i + 3]) % job.part_bytes(change.part);
    change.mask = data[i + 4];
    changes.push_back(change);
  }
  const std::string complaint = job.recover(changes, options);
  if (complaint.empty()) return 0;
  std::fprintf(stderr, "%s\n", complaint.c_str());
  std::abort();
}
