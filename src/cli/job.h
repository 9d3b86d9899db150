#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/summary.h"

namespace spillway::cli {

// A name for a new job, unique among all of this user: "host-pid-milliseconds", of letters, digits, '-' and
// '_'.
[[nodiscard]] std::string new_job_name();

// The directory in which a job keeps its memory journals on one node.
[[nodiscard]] std::string job_directory(const std::string& shm_dir, const std::string& job);

// A private directory with the file to which nodes add their summary lines; both go with the object.
class SummaryFile {
 public:
  // Fails: by errno, naming the directory.
  static Result<SummaryFile> create();
  SummaryFile(SummaryFile&& other) noexcept : directory_(std::exchange(other.directory_, "")) {}
  SummaryFile& operator=(SummaryFile&&) = delete;
  ~SummaryFile();

  [[nodiscard]] std::string path() const { return directory_ + "/summary"; }

  struct Content {
    base::RunSummary total;
    int lines = 0;
    int damaged_lines = 0;
  };
  [[nodiscard]] Content read() const;

 private:
  explicit SummaryFile(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;
};

// The one line after a run, without prefix: what the nodes reported, or that none did.
[[nodiscard]] std::string end_of_run_text(const SummaryFile::Content& content, int exit_code);

// Bytes of journal files that a job left on this node; -1: it left no directory or an empty one.
[[nodiscard]] std::int64_t left_behind_bytes(const std::string& directory);

}  // namespace spillway::cli
