#include "cli/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace spillway::cli {

namespace fs = std::filesystem;

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
  return fmt::format("{}-{}-{}", name, ::getpid(),
                     std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

std::string job_directory(const std::string& shm_dir, const std::string& job) {
  return fmt::format("{}/spillway-{}/{}", shm_dir, ::getuid(), job);
}

Result<SummaryFile> SummaryFile::create() {
  const char* parent = std::getenv("TMPDIR");
  std::string directory =
      fmt::format("{}/spillway-run-XXXXXX", parent == nullptr || *parent != '/' ? "/tmp" : parent);
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

std::int64_t left_behind_bytes(const std::string& directory) {
  std::error_code error;
  std::int64_t bytes = -1;
  for (fs::recursive_directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unreadable;
    const auto size = entry->is_regular_file(unreadable) ? entry->file_size(unreadable) : 0;
    bytes = std::max<std::int64_t>(bytes, 0) + (unreadable ? 0 : static_cast<std::int64_t>(size));
  }
  return bytes;
}

}  // namespace spillway::cli
