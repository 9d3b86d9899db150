#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/left_jobs.h"

namespace spillway::cli {
namespace {

class StatusCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.description("Show your jobs with journals on this node, running or not, and what is pending for which file.");
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
    if (jobs->empty()) fmt::print("no jobs with journals in {}\n", shm_dir.value());
    for (const drain::LeftJob& job : jobs.value()) fmt::print("{}", describe_job(job));
    return kExitOk;
  }

 private:
  LeftJobsArguments arguments_;
};

}  // namespace

std::unique_ptr<Command> make_status_command() { return std::make_unique<StatusCommand>(); }

}  // namespace spillway::cli
