#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/summary.h"

namespace spillway::cli {

// A name for a new job, unique among all of this user: "host-pid-milliseconds", of letters, digits, '-' and
// '_'.
[[nodiscard]] std::string new_job_name();

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

// What a job that has ended left on this node, as a sentence with what to do about it; empty: nothing. Journals that hold nothing
// any more, of processes that were killed, are removed.
[[nodiscard]] std::string clean_up_after(const std::string& shm_dir, const std::string& job);

}  // namespace spillway::cli
