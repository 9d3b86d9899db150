#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/log.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/left_jobs.h"
#include "storage/posix_backend.h"

namespace spillway::cli {
namespace {

constexpr int kExitIncomplete = 1;

class RecoverCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.description(
        "Complete the files of jobs that were killed, or that could not write their last bytes, from the\n"
        "journals on this node. Without JOB: every job of yours that is not running. It can be interrupted\n"
        "and repeated. The exit code is 0 when nothing is left to do, 1 when something could not be\n"
        "recovered (it is listed, and its journal kept), 2 when the arguments are wrong.");
    app.add_option("JOB", job_, "Name or directory of one job, as `spillway status` and the end of a run show it.");
    app.add_flag("--dry-run", options_.dry_run, "Show what would be written; change nothing.");
    app.add_flag("--salvage", options_.salvage,
                 "Write what can be written although journals are damaged or files are gone, and give up the rest: the "
                 "journals are "
                 "removed.");
    arguments_.add_to(app);
  }
  [[nodiscard]] bool takes_command() const override { return false; }

  int run(const std::vector<std::string>&) override {
    const Result<std::string> shm_dir = arguments_.shm_dir();
    Result<std::vector<drain::LeftJob>> jobs = shm_dir.ok() ? drain::list_jobs(shm_dir.value()) : shm_dir.status();
    if (!jobs.ok()) {
      base::log_error(jobs.status().what());
      return kExitBadArguments;
    }
    bool found = false;
    bool complete = true;
    for (const drain::LeftJob& job : jobs.value()) {
      if (!job_.empty() && job_ != job.job && job_ != job.directory && job_ != job.directory + "/") continue;
      found = true;
      if (job_.empty() && job.alive) {
        fmt::print("job {}: still runs, left alone\n", job.job);
        continue;
      }
      complete = recover(job) && complete;
    }
    if (!found && !job_.empty()) {
      base::log_error(fmt::format("no job '{}' in {}; accepted: a name or directory that `spillway status` shows", job_,
                                  shm_dir.value()));
      return kExitBadArguments;
    }
    if (!found) fmt::print("nothing to recover in {}\n", shm_dir.value());
    return complete ? kExitOk : kExitIncomplete;
  }

 private:
  bool recover(const drain::LeftJob& job) const {
    const std::unique_ptr<storage::Backend> backend = storage::make_posix_backend(base::DirectIo::automatic);
    Result<drain::RecoveryReport> report = drain::recover_job(job.directory, *backend, options_);
    if (!report.ok()) {
      base::log_error(fmt::format("job {}: {}", job.job, report.status().what()));
      return false;
    }
    for (const std::string& damage : report->damage) base::log_error(fmt::format("job {}: {}", job.job, damage));
    bool complete = report->damage.empty() || options_.salvage;
    for (const drain::RecoveredFile& file : report->files) complete = print_file(file) && complete;
    if (!report->damage.empty() && !options_.salvage) {
      base::log_error(fmt::format(
          "job {}: nothing was written, because its journals are damaged; --salvage writes what is sound", job.job));
    }
    if (!complete && report->damage.empty()) {
      base::log_error(fmt::format("job {}: its journals are kept in {}; once the cause is mended, recover again",
                                  job.job, job.directory));
    }
    if (report->removed) fmt::print("job {}: complete, journals removed\n", job.job);
    return complete;
  }

  [[nodiscard]] bool print_file(const drain::RecoveredFile& file) const {
    fmt::print("{}: {} {}\n", file.path, base::format_bytes(file.bytes_written),
               options_.dry_run ? "would be written" : "written");
    if (file.problem.empty()) return true;
    base::log_error(fmt::format("{}: {}", file.path, file.problem));
    for (const extent::Extent& lost : file.lost) {
      base::log_error(fmt::format("{}: not recovered: bytes {} to {}", file.path, lost.offset, lost.end() - 1));
    }
    return options_.salvage;
  }

  LeftJobsArguments arguments_;
  drain::RecoveryOptions options_;
  std::string job_;
};

}  // namespace

std::unique_ptr<Command> make_recover_command() { return std::make_unique<RecoverCommand>(); }

}  // namespace spillway::cli
