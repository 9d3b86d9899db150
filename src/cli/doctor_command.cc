#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/log.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/job.h"
#include "cli/launch_plan.h"
#include "cli/machine.h"
#include "cli/settings_arguments.h"
#include "cli/words.h"

namespace spillway::cli {
namespace {

// Launchers as the MPIs and their packages name them; the first of a directory stands for the others there.
constexpr std::string_view kLauncherNames[] = {"mpiexec",       "mpirun",          "mpiexec.hydra",
                                               "mpiexec.mpich", "mpiexec.openmpi", "srun"};

class Doctor {
 public:
  explicit Doctor(const ResolvedSettings& resolved) : resolved_(resolved) {}

  // Prints everything; returns the exit code.
  int examine(const std::vector<std::string>& command) {
    show_machine();
    show_directories();
    show_settings();
    const bool mpi_usable = show_mpis();
    if (!command.empty()) {
      show_command(command);
    } else if (!mpi_usable) {
      problem("no MPI on PATH that Spillway has a preload library for");
    }
    fmt::print("\n{}\n", problems_.empty() ? "Spillway is usable here." : "Not usable:");
    for (const std::string& text : problems_) fmt::print("  {}\n", text);
    return problems_.empty() ? kExitOk : kExitUnusable;
  }

 private:
  static void section(std::string_view title) { fmt::print("\n{}\n", title); }
  static void line(std::string_view key, std::string_view value) { fmt::print("  {:<22} {}\n", key, value); }
  void problem(std::string text) { problems_.push_back(std::move(text)); }

  static void show_machine() {
    fmt::print("Spillway {}\n", SPILLWAY_VERSION);
    section("Machine");
    line("kernel", kernel_release());
    line("cores", fmt::format("{}", core_count()));
    line("memory", fmt::format("{}, {} available", base::format_bytes(memory_bytes()),
                               base::format_bytes(available_memory_bytes())));
    line("page size", base::format_bytes(page_bytes()));
    line("shared huge pages", shared_huge_pages());
    line("io_uring", io_uring_support());
    line("FUSE", fuse_support());
  }

  void show_directories() {
    const std::string& shm_dir = resolved_.settings.shm_dir;
    const FileSystemSpace shm = file_system_space(shm_dir);
    section(fmt::format("Memory journal in {}", shm_dir));
    line("file system", shm.type.empty() ? "none" : shm.type);
    line("size", fmt::format("{}, {} free", base::format_bytes(shm.size_bytes), base::format_bytes(shm.free_bytes)));
    const int processes = core_count();
    line("memory = auto",
         fmt::format("{} for each of {} processes",
                     base::format_bytes(base::automatic_memory_bytes(memory_bytes(), shm.size_bytes, processes)),
                     processes));
    if (Status status = check_directories(resolved_); !status.ok()) problem(status.what());
    std::error_code error;
    const std::string here = std::filesystem::current_path(error).string();
    section(fmt::format("Working directory {}", here));
    line("file system", file_system_space(here).type);
    const DirectoryProbe probe = probe_directory(here);
    line("writable", probe.writable);
    line("fallocate", probe.fallocate);
    line("O_DIRECT", probe.direct_io);
  }

  void show_settings() {
    section("Settings in force");
    for (const base::OptionSpec& option : base::option_table()) {
      const auto origin = resolved_.origins.find(option.name);
      line(option.name, fmt::format("{:<16} {}", base::option_value_text(resolved_.settings, option.name),
                                    origin == resolved_.origins.end() ? "default" : origin->second));
    }
  }

  // Whether one of them has a preload library.
  static bool show_mpis() {
    section("MPIs on PATH");
    std::set<std::string> seen;
    bool usable = false;
    for (const std::string& directory : path_directories()) {
      for (const std::string_view name : kLauncherNames) {
        const std::string path = fmt::format("{}/{}", directory, name);
        if (::access(path.c_str(), X_OK) != 0) continue;
        const Result<Launcher> launcher = ask_launcher(path);
        const std::string version = launcher.ok() ? launcher.value().version : "not recognised";
        std::error_code error;
        const std::string real = std::filesystem::canonical(directory, error).string();
        if (!seen.insert(real + version).second) continue;
        line(version, path);
        if (launcher.ok()) usable |= show_preload(launcher.value());
      }
    }
    if (seen.empty()) line("none", "");
    return usable;
  }

  static bool show_preload(const Launcher& launcher) {
    if (!launcher.abi) {
      line("", "starts programs of any MPI");
      return false;
    }
    const Result<std::string> preload = preload_library(*launcher.abi);
    line("", fmt::format("ABI of {}: {}", title_of(*launcher.abi),
                         preload.ok() ? preload.value() : preload.status().what()));
    return preload.ok();
  }

  void show_command(const std::vector<std::string>& command) {
    section("The command");
    const Result<LaunchPlan> planned = plan_launch(command, resolved_.mpi);
    if (!planned.ok()) {
      line("refused", planned.status().what());
      problem("the command would be refused");
      return;
    }
    const LaunchPlan& plan = planned.value();
    line("launcher", plan.launcher.path.empty() ? "none"
                                                : fmt::format("{} ({}, {})", plan.launcher.path, plan.launcher.version,
                                                              title_of(plan.launcher.family)));
    for (const Program& program : plan.programs) show_program(program);
    line("preload library", plan.preload);
    for (const std::string& note : plan.notes) line("note", note);
    const char* before = std::getenv("LD_PRELOAD");
    base::EnvironmentList variables = variables_of(resolved_);
    variables.emplace_back("SPILLWAY_JOB", new_job_name());
    const Invocation invocation =
        rewrite_launch(plan.command, plan.preload, before == nullptr ? "" : before, variables);
    std::vector<std::string> words;
    for (const auto& [name, value] : invocation.environment) words.push_back(shell_word(name + "=" + value));
    if (!words.empty()) words.insert(words.begin(), "env");
    for (const std::string& word : invocation.words) words.push_back(shell_word(word));
    line("would run", fmt::format("{}", fmt::join(words, " ")));
  }

  static void show_program(const Program& program) {
    std::string text = program.path;
    for (const std::string& wrapper : program.wrappers) text += fmt::format(", behind {}", wrapper);
    line("program", text);
    if (program.abi) {
      line("its MPI", fmt::format("{} ({})", title_of(*program.abi),
                                  program.mpi_library.path.empty() ? program.mpi_library.soname + ", not found"
                                                                   : program.mpi_library.path));
    }
  }

  const ResolvedSettings& resolved_;
  std::vector<std::string> problems_;
};

class DoctorCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.description(
        "Show what was found on this machine, the settings in force with their origins, and, for a command\n"
        "behind `--`, what `spillway run` would do with it:\n"
        "  spillway doctor -- mpiexec -n 4 ./simulation\n"
        "Launchers are asked for their version; nothing else is run. Exit code: 0 usable, 1 not.");
    settings_.add_to(app);
  }

  [[nodiscard]] bool takes_command() const override { return true; }

  int run(const std::vector<std::string>& command) override {
    const Result<ResolvedSettings> resolved = settings_.resolve();
    if (resolved.ok()) return Doctor(resolved.value()).examine(command);
    base::log_error(resolved.status().what());
    return kExitBadArguments;
  }

 private:
  SettingsArguments settings_;
};

}  // namespace

std::unique_ptr<Command> make_doctor_command() { return std::make_unique<DoctorCommand>(); }

}  // namespace spillway::cli
