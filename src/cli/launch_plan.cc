#include "cli/launch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/words.h"

namespace spillway::cli {
namespace {

constexpr std::string_view kUsage = "accepted: [launcher and its options] PROGRAM [arguments]";

class Planner {
 public:
  explicit Planner(std::optional<MpiAbi> mpi) : mpi_(mpi) {}

  Result<LaunchPlan> plan(std::vector<std::string> words) {
    if (words.empty()) return Status(Code::bad_argument, fmt::format("no command behind '--'; {}", kUsage));
    const std::size_t launcher_at = skip_wrappers(words);
    if (Status status = find_launcher(words[launcher_at]); !status.ok()) return status;
    Result<LaunchCommand> command = parse_launch(plan_.launcher.family, std::move(words), launcher_at);
    if (!command.ok()) return command.status();
    plan_.command = std::move(command.value());
    plan_.notes = plan_.command.notes;
    if (Status status = inspect_contexts(); !status.ok()) return status;
    if (Status status = decide_abi(); !status.ok()) return status;
    Result<std::string> preload = preload_library(plan_.abi);
    if (!preload.ok()) return preload.status();
    plan_.preload = std::move(preload.value());
    return std::move(plan_);
  }

 private:
  static std::size_t skip_wrappers(const std::vector<std::string>& words) {
    std::size_t at = 0;
    for (std::size_t count = 1; count > 0; at += count) count = wrapper_words(std::span(words).subspan(at));
    // Wrappers in front of a program without a launcher belong to the program.
    return is_launcher_name(base_name_of(words[at])) ? at : 0;
  }

  Status find_launcher(const std::string& word) {
    const std::string_view name = base_name_of(word);
    if (is_unsupported_launcher(name)) {
      return {Code::unsupported,
              fmt::format("{} is a launcher that Spillway cannot drive; accepted: mpiexec and mpirun of "
                          "MPICH, Intel MPI and Open MPI, prterun, srun",
                          name)};
    }
    if (!is_launcher_name(name)) return {};
    const Result<std::string> path = find_program(word, {});
    if (!path.ok()) return path.status();
    Result<Launcher> launcher = ask_launcher(path.value());
    if (!launcher.ok()) return launcher.status();
    plan_.launcher = std::move(launcher.value());
    return {};
  }

  // srun's own default for --export lies in a variable that an explicit --export would override.
  void inherit_srun_exports(AppContext& context) {
    const char* list = std::getenv("SLURM_EXPORT_ENV");
    if (plan_.launcher.family != LauncherFamily::srun || !context.exports.empty() || list == nullptr) return;
    context.inherited_exports = split(list, ',');
  }

  // ORTE refuses its -x beside this parameter, and would start nothing.
  Status refuse_environment_list() const {
    constexpr const char* kParameter = "mca_base_env_list";
    const std::vector<std::string>& words = plan_.command.words;
    bool given = std::getenv("OMPI_MCA_mca_base_env_list") != nullptr;
    for (const AppContext& context : plan_.command.contexts) {
      for (std::size_t at = context.options_at; at < context.program_at; ++at) given |= words[at] == kParameter;
    }
    if (plan_.launcher.family != LauncherFamily::orte || !given) return {};
    return {Code::unsupported, fmt::format("{}: Open MPI 4 does not accept it together with -x, which Spillway needs; "
                                           "accepted: -x for those variables too",
                                           kParameter)};
  }

  Status inspect_contexts() {
    if (Status status = refuse_environment_list(); !status.ok()) return status;
    for (AppContext& context : plan_.command.contexts) {
      inherit_srun_exports(context);
      const bool here_too = plan_.launcher.family != LauncherFamily::hydra;
      const SearchPlace place{context.working_directory, context.search_path,
                              here_too && plan_.launcher.family != LauncherFamily::none};
      Status status;
      if (context.multi_prog) {
        status = inspect_list(context.program_list, place);
      } else if (!context.program_list.empty()) {
        plan_.notes.push_back(fmt::format("the programs in {} were not looked at", context.program_list));
      } else {
        const std::span<const std::string> words(plan_.command.words);
        status = inspect(words.subspan(context.program_at, context.end - context.program_at), place);
      }
      if (!status.ok()) return status;
    }
    return {};
  }

  Status inspect(std::span<const std::string> words, const SearchPlace& place) {
    Result<Program> program = inspect_program(words, place);
    if (!program.ok()) return program.status();
    plan_.programs.push_back(std::move(program.value()));
    return {};
  }

  // Lines "RANKS PROGRAM ARGUMENTS", comments with '#' (srun(1), "MULTIPLE PROGRAM CONFIGURATION").
  Status inspect_list(const std::string& file, const SearchPlace& place) {
    std::ifstream lines(file);
    if (!lines) return {Code::no_such_file, fmt::format("the file {} of --multi-prog cannot be read", file)};
    for (std::string line; std::getline(lines, line);) {
      std::istringstream text(line);
      std::string ranks;
      std::string program;
      if (!(text >> ranks >> program) || ranks.starts_with('#')) continue;
      if (Status status = inspect(std::span(&program, 1), place); !status.ok()) return status;
    }
    return {};
  }

  Status decide_abi() {
    std::optional<MpiAbi> abi;
    std::string abi_from;
    for (const Program& program : plan_.programs) {
      if (!program.abi) continue;
      if (abi && *abi != *program.abi) {
        return mixed(fmt::format("{} is linked to {} and {} to {}", abi_from, title_of(*abi), program.path,
                                 title_of(*program.abi)));
      }
      abi = program.abi;
      abi_from = program.path;
    }
    if (abi && mpi_ && *abi != *mpi_) {
      return mixed(
          fmt::format("--mpi: '{}' was given, but {} is linked to {}", name_of(*mpi_), abi_from, title_of(*abi)));
    }
    if (!abi) abi = mpi_;
    const std::optional<MpiAbi>& of_launcher = plan_.launcher.abi;
    if (abi && of_launcher && *abi != *of_launcher && *abi != MpiAbi::standard) {
      return mixed(fmt::format("{} is of {}, but {} {}", plan_.launcher.path, plan_.launcher.version,
                               abi_from.empty() ? "--mpi says" : abi_from + " is linked to", title_of(*abi)));
    }
    return abi_of_the_rest(abi);
  }

  static Status mixed(const std::string& what) {
    return {Code::unsupported, fmt::format("mixed MPIs: {}; accepted: programs and launcher of one MPI", what)};
  }

  // Programs that do not show their MPI take that of the others, of --mpi or, when interpreted, of the
  // launcher.
  Status abi_of_the_rest(const std::optional<MpiAbi>& abi) {
    for (const Program& program : plan_.programs) {
      if (program.abi || mpi_) continue;
      if (!program.interpreted) {
        return {Code::unsupported,
                fmt::format("no MPI found in {}: none of the libraries it loads at its start is a libmpi; accepted: a "
                            "program linked to MPI, or --mpi mpich|openmpi for one that loads or starts it later",
                            program.path)};
      }
      plan_.notes.push_back(fmt::format("{} is a script or an interpreter: its MPI was taken from the {}", program.path,
                                        abi ? "other programs" : "launcher"));
    }
    const std::optional<MpiAbi> decided = abi ? abi : plan_.launcher.abi;
    if (!decided) {
      return {
          Code::unsupported,
          fmt::format("cannot tell which MPI {} uses: it is a script or an interpreter, and {}; accepted: --mpi "
                      "mpich|openmpi",
                      plan_.programs.empty() ? "the program" : plan_.programs.front().word,
                      plan_.launcher.family == LauncherFamily::none ? "no launcher tells" : "the launcher serves any")};
    }
    plan_.abi = *decided;
    return {};
  }

  std::optional<MpiAbi> mpi_;
  LaunchPlan plan_;
};

}  // namespace

Result<LaunchPlan> plan_launch(std::vector<std::string> words, std::optional<MpiAbi> mpi) {
  return Planner(mpi).plan(std::move(words));
}

}  // namespace spillway::cli
