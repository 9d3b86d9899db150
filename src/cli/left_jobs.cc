#include "cli/left_jobs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>

#include "base/config.h"
#include "base/units.h"

namespace spillway::cli {

void LeftJobsArguments::add_to(CLI::App& app) {
  app.add_option("--shm-dir", given_, "Directory of the memory journals, as the job was given it.")->type_name("DIR");
}

Result<std::string> LeftJobsArguments::shm_dir() const {
  std::string directory = given_;
  std::string origin = "--shm-dir";
  if (directory.empty()) {
    const base::EnvironmentList environment = base::spillway_environment();
    base::Origins origins;
    const Result<base::Settings> settings =
        base::load_settings(environment, base::configuration_file(environment), &origins);
    if (!settings.ok()) return settings.status();
    directory = settings.value().shm_dir;
    const auto found = origins.find("shm_dir");
    origin = found != origins.end() ? found->second : "shm_dir";
  }
  struct stat st {};
  if (::stat(directory.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return directory;
  return Status(Code::no_such_file,
                fmt::format("{}: '{}' is not a directory; accepted: an existing one", origin, directory));
}

std::string describe_job(const drain::LeftJob& job) {
  std::int64_t bytes = 0;
  for (const drain::PendingFile& file : job.files) bytes += file.bytes;
  std::string text =
      fmt::format("job {}, {}: {} pending in {} file{}\n", job.job, job.alive ? "running" : "not running",
                  base::format_bytes(bytes), job.files.size(), job.files.size() == 1 ? "" : "s");
  for (const drain::PendingFile& file : job.files) {
    text += fmt::format("  {}: {} in {} record{}\n", file.path, base::format_bytes(file.bytes), file.records,
                        file.records == 1 ? "" : "s");
  }
  if (!job.problem.empty()) text += fmt::format("  {}\n", job.problem);
  return text;
}

}  // namespace spillway::cli
