#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "extent/extent.h"
#include "storage/backend.h"

// What jobs have left in shared memory: bytes that were complete when their processes died, or that could not be written.
namespace spillway::drain {

// A file with bytes in a job's journals.
struct PendingFile {
  std::string path;  // as it was last opened
  std::int64_t records = 0;
  std::int64_t bytes = 0;
};

struct LeftJob {
  std::string directory;
  std::string job;
  bool alive = false;  // a process of it still runs on this node: nothing to recover yet
  std::vector<PendingFile> files;
  std::string problem;  // why it cannot be read; empty: it can
};

// The jobs of this user that have anything in `shm_dir`, alive or not; changes nothing.
Result<std::vector<LeftJob>> list_jobs(const std::string& shm_dir);

struct RecoveryOptions {
  bool dry_run = false;
  // Go on past records that do not check, and past files that are gone: their bytes are given up.
  bool salvage = false;
};

struct RecoveredFile {
  std::string path;
  std::int64_t bytes_written = 0;
  std::vector<extent::Extent> lost;  // ranges that could not be recovered, or would not be in a dry run
  std::string problem;               // why; empty: nothing was lost
};

struct RecoveryReport {
  std::vector<RecoveredFile> files;
  std::vector<std::string> damage;  // journals that do not check, each with the place
  bool removed = false;             // everything is in its files, the journals are gone
};

// Writes what a dead job left into its files, oldest first, and removes the journals once all of it is durable. May be killed and
// repeated: a record that was written twice is the same record, and newer ones follow it again.
// Fails: file_in_use (the job lives, or another recovery runs), no_such_file, corrupt (another version).
Result<RecoveryReport> recover_job(const std::string& directory, storage::Backend& backend,
                                   const RecoveryOptions& options);

}  // namespace spillway::drain
