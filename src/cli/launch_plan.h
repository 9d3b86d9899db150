#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "cli/launch_syntax.h"
#include "cli/launcher.h"
#include "cli/program.h"

namespace spillway::cli {

// Everything that `spillway run` decides before it starts anything.
struct LaunchPlan {
  Launcher launcher;
  LaunchCommand command;
  std::vector<Program> programs;
  MpiAbi abi = MpiAbi::mpich;
  std::string preload;             // the library's path
  std::vector<std::string> notes;  // what was assumed rather than seen
};

// Finds launcher, programs, their MPI and the preload library for a command such as {"mpiexec", "-n", "4",
// "./a.out"}. `mpi` is the user's word on the MPI, for programs that do not show it. Blocks: on the
// launcher's --version and on dynamic loaders. Fails: bad_argument, unsupported, no_such_file, access_denied,
// with a message that says what would be accepted.
Result<LaunchPlan> plan_launch(std::vector<std::string> words, std::optional<MpiAbi> mpi);

// A command as it is started: its words, and changes to the launcher's environment.
struct Invocation {
  std::vector<std::string> words;
  base::EnvironmentList environment;
};

// Adds to a launcher command what takes the library and the variables to every rank, and nothing of it into
// the launcher where that can be avoided: -genv (hydra), -x in every context (PRRTE, ORTE), --export with the
// variables in the environment (srun), the environment (no launcher). A variable that the user sets through
// the launcher stays; an LD_PRELOAD (there, or `preload_before` from the environment) keeps its libraries in
// front of ours, so that a profiler sees what the program asked for. Pure.
[[nodiscard]] Invocation rewrite_launch(const LaunchCommand& command, const std::string& preload,
                                        const std::string& preload_before, const base::EnvironmentList& variables);

}  // namespace spillway::cli
