#include "cli/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "base/config.h"
#include "base/units.h"
#include "drain/recovery.h"
#include "storage/posix_backend.h"

namespace spillway::cli {

std::string new_job_name() {
  char host[256] = "node";
  ::gethostname(host, sizeof host - 1);
  std::string name(host);
  name = name.substr(0, name.find('.'));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!plain) c = '_';
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{}-{}-{}", name, ::getpid(), std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

Result<SummaryFile> SummaryFile::create() {
  const char* parent = std::getenv("TMPDIR");
  std::string directory = fmt::format("{}/spillway-run-XXXXXX", parent == nullptr || *parent != '/' ? "/tmp" : parent);
  if (::mkdtemp(directory.data()) == nullptr) {
    return Status::from_errno(errno, fmt::format("cannot make the directory {} for the summary", directory));
  }
  return SummaryFile(std::move(directory));
}

SummaryFile::~SummaryFile() {
  if (directory_.empty()) return;
  ::unlink(path().c_str());
  ::rmdir(directory_.c_str());
}

SummaryFile::Content SummaryFile::read() const {
  Content content;
  std::ifstream lines(path());
  for (std::string line; std::getline(lines, line);) {
    const Result<base::RunSummary> node = base::parse_summary_line(line);
    if (!node.ok()) {
      ++content.damaged_lines;
      continue;
    }
    ++content.lines;
    base::add_summary(content.total, node.value());
  }
  return content;
}

std::string end_of_run_text(const SummaryFile::Content& content, int exit_code) {
  std::string text;
  if (content.lines > 0) {
    text = base::summary_text(content.total);
  } else if (exit_code != 0) {
    text = fmt::format("no summary: the program ended with exit code {} before it could report", exit_code);
  } else {
    text = "nothing went through MPI-IO: no process opened a file that Spillway manages";
  }
  const int damaged = content.damaged_lines;
  if (damaged > 0) text += fmt::format("; {} summary lines were damaged", damaged);
  return text;
}

std::string clean_up_after(const std::string& shm_dir, const std::string& job) {
  const Result<std::vector<drain::LeftJob>> jobs = drain::list_jobs(shm_dir);
  if (!jobs.ok()) return "";
  for (const drain::LeftJob& left : jobs.value()) {
    if (left.job != job) continue;
    if (left.alive) return fmt::format("processes of the job still run, with journals in {}", left.directory);
    std::int64_t bytes = 0;
    for (const drain::PendingFile& file : left.files) bytes += file.bytes;
    if (bytes == 0 && left.problem.empty()) {
      const auto backend = storage::make_posix_backend(base::DirectIo::off);
      (void)drain::recover_job(left.directory, *backend, {});
      return "";
    }
    const std::string where = shm_dir == base::Settings().shm_dir ? "" : fmt::format("--shm-dir {} ", shm_dir);
    return fmt::format("{} are complete in the job's journals but not in their files yet: run `spillway recover {}{}`",
                       base::format_bytes(bytes), where, job);
  }
  return "";
}

}  // namespace spillway::cli
