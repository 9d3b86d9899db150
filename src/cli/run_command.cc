#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/job.h"
#include "cli/launch_plan.h"
#include "cli/settings_arguments.h"
#include "cli/subprocess.h"

namespace spillway::cli {
namespace {

// `mpiexec -n 4 spillway run -- ./program`: every rank would become a job of its own, and no two of them
// would share a journal. A launcher behind `--` is fine: a shell inside an allocation may well be a rank of
// one.
Status refuse_inside_a_rank(const LaunchPlan& plan) {
  if (plan.launcher.family != LauncherFamily::none) return {};
  for (const char* name : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* size = std::getenv(name);
    if (size == nullptr || std::atoi(size) <= 1) continue;
    return {Code::bad_argument,
            fmt::format("{} is {}, so this is one of several ranks; accepted: spillway run [options] -- "
                        "LAUNCHER ..., not LAUNCHER ... spillway run",
                        name, size)};
  }
  return {};
}

class RunCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.description(
        "Run an MPI program with Spillway beneath its MPI-IO, for example\n"
        "  spillway run --memory 512MiB -- mpiexec -n 4 ./simulation input.nml\n"
        "The program is not changed; the launcher is told to preload a library into every rank. The exit\n"
        "code is that of the launcher; 2 means that nothing was started.");
    settings_.add_to(app);
  }

  [[nodiscard]] bool takes_command() const override { return true; }

  int run(const std::vector<std::string>& command) override {
    Result<int> exit_code = start(command);
    if (exit_code.ok()) return exit_code.value();
    base::log_error(exit_code.status().what());
    return kExitBadArguments;
  }

 private:
  Result<int> start(const std::vector<std::string>& command) {
    const Result<ResolvedSettings> resolved = settings_.resolve();
    if (!resolved.ok()) return resolved.status();
    const base::Settings& settings = resolved.value().settings;
    base::set_log_level(settings.log_level);
    if (Status status = check_directories(resolved.value()); !status.ok()) return status;
    const Result<LaunchPlan> plan = plan_launch(command, resolved.value().mpi);
    if (!plan.ok()) return plan.status();
    if (Status status = refuse_inside_a_rank(plan.value()); !status.ok()) return status;
    for (const std::string& note : plan.value().notes) base::log_info(note);

    const Result<SummaryFile> summary = SummaryFile::create();
    if (!summary.ok()) return summary.status();
    const std::string job = new_job_name();
    base::EnvironmentList variables = variables_of(resolved.value());
    variables.emplace_back("SPILLWAY_JOB", job);
    variables.emplace_back("SPILLWAY_SUMMARY_FILE", summary.value().path());
    const char* preload_before = std::getenv("LD_PRELOAD");
    const Invocation invocation = rewrite_launch(plan.value().command, plan.value().preload,
                                                 preload_before == nullptr ? "" : preload_before, variables);
    Result<int> exit_code = run_child(invocation.words, invocation.environment);
    if (!exit_code.ok()) return exit_code.status();
    report(settings, summary.value(), job, exit_code.value());
    return exit_code;
  }

  static void report(const base::Settings& settings, const SummaryFile& summary, const std::string& job,
                     int exit_code) {
    // The summary was asked for by its own setting, so the level of messages does not drop it.
    if (settings.summary) base::log_error(end_of_run_text(summary.read(), exit_code));
    if (const std::string left = clean_up_after(settings.shm_dir, job); !left.empty()) base::log_error(left);
  }

  SettingsArguments settings_;
};

}  // namespace

std::unique_ptr<Command> make_run_command() { return std::make_unique<RunCommand>(); }

}  // namespace spillway::cli
