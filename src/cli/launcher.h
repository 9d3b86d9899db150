#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cli/mpi_abi.h"

namespace spillway::cli {

// Families of launchers that take their options in the same way. `none`: the program itself, a job of one
// process.
enum class LauncherFamily { none, hydra, prrte, orte, srun };

[[nodiscard]] std::string_view title_of(LauncherFamily family);

struct Launcher {
  LauncherFamily family = LauncherFamily::none;
  std::optional<MpiAbi> abi;  // of the programs it can start; nothing: of any
  std::string path;
  std::string version;  // "Open MPI 5.0.11"
};

// Called like a launcher of the families above, so that asking it for its version is safe.
[[nodiscard]] bool is_launcher_name(std::string_view base_name);

// What the answer to --version says. Nothing when it is none of the known ones.
[[nodiscard]] std::optional<Launcher> launcher_of_version(std::string_view base_name, std::string_view answer);

// Runs `PATH --version`. Blocks: on the launcher, 20 s at most.
// Fails: unsupported for one that gives an unknown answer, with that answer; as capture() fails.
Result<Launcher> ask_launcher(const std::string& path);

// A launcher of another kind (aprun, jsrun, flux ...), which Spillway cannot drive.
[[nodiscard]] bool is_unsupported_launcher(std::string_view base_name);

}  // namespace spillway::cli
