#include "cli/launcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/subprocess.h"

namespace spillway::cli {
namespace {

// Enough for a login node under load.
constexpr int kVersionTimeoutMs = 20000;

std::string_view first_line(std::string_view text) {
  while (text.starts_with('\n')) text.remove_prefix(1);
  return text.substr(0, text.find('\n'));
}

// The word after a label: "Version:    5.0.2\n" -> "5.0.2".
std::string_view word_after(std::string_view text, std::string_view label) {
  const std::size_t at = text.find(label);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + label.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_first_of(" \n,"));
}

int major_of(std::string_view version) {
  int major = 0;
  for (const char c : version) {
    if (c < '0' || c > '9' || major > 1000) break;
    major = major * 10 + (c - '0');
  }
  return major;
}

// Open MPI 4 calls itself OpenRTE when its name has a suffix, as in mpirun.openmpi.
std::string_view openmpi_version(std::string_view answer) {
  const std::string_view version = word_after(answer, "(Open MPI)");
  return version.empty() ? word_after(answer, "(OpenRTE)") : version;
}

}  // namespace

std::string_view title_of(LauncherFamily family) {
  switch (family) {
    case LauncherFamily::none:
      return "no launcher";
    case LauncherFamily::hydra:
      return "hydra";
    case LauncherFamily::prrte:
      return "PRRTE";
    case LauncherFamily::orte:
      return "ORTE";
    case LauncherFamily::srun:
      return "srun";
  }
  return "";
}

bool is_launcher_name(std::string_view base_name) {
  for (const std::string_view prefix : {"mpiexec", "mpirun", "orterun", "prterun"}) {
    if (base_name == prefix || base_name.starts_with(fmt::format("{}.", prefix))) return true;
  }
  return base_name == "srun";
}

bool is_unsupported_launcher(std::string_view base_name) {
  constexpr std::string_view kNames[] = {"aprun", "jsrun",   "lrun", "flux",  "ibrun",       "yhrun",
                                         "prun",  "palscmd", "poe",  "pjsub", "mpiexec_mpt", "mpirun_rsh"};
  return std::ranges::find(kNames, base_name) != std::end(kNames);
}

std::optional<Launcher> launcher_of_version(std::string_view base_name, std::string_view answer) {
  Launcher launcher;
  if (base_name == "srun") {
    launcher.family = LauncherFamily::srun;
    launcher.version = first_line(answer);
  } else if (answer.find("HYDRA") != std::string_view::npos) {
    launcher.family = LauncherFamily::hydra;
    launcher.abi = MpiAbi::mpich;
    launcher.version = fmt::format("MPICH {}", word_after(answer, "Version:"));
  } else if (answer.find("Intel(R) MPI") != std::string_view::npos) {
    launcher.family = LauncherFamily::hydra;
    launcher.abi = MpiAbi::mpich;
    launcher.version = fmt::format("Intel MPI {}", word_after(answer, "Version "));
  } else if (const std::string_view version = openmpi_version(answer); !version.empty()) {
    launcher.family = major_of(version) >= 5 ? LauncherFamily::prrte : LauncherFamily::orte;
    launcher.abi = MpiAbi::openmpi;
    launcher.version = fmt::format("Open MPI {}", version);
  } else if (answer.find("PRRTE") != std::string_view::npos) {
    launcher.family = LauncherFamily::prrte;
    launcher.version = first_line(answer);
  } else {
    return std::nullopt;
  }
  return launcher;
}

Result<Launcher> ask_launcher(const std::string& path) {
  const Result<CapturedOutput> answer = capture({path, "--version"}, kVersionTimeoutMs, {"LD_PRELOAD"});
  if (!answer.ok()) return answer.status();
  const std::string base_name = path.substr(path.rfind('/') + 1);
  std::optional<Launcher> launcher = launcher_of_version(base_name, answer.value().text);
  if (!launcher) {
    return Status(
        Code::unsupported,
        fmt::format("{} is no launcher that Spillway knows; accepted: mpiexec and mpirun of MPICH, Intel MPI and "
                    "Open MPI 4 or 5, prterun, srun; its answer to --version begins '{}'",
                    path, first_line(answer.value().text)));
  }
  launcher->path = path;
  return *launcher;
}

}  // namespace spillway::cli
