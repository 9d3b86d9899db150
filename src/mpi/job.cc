#include "mpi/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace spillway::mpi {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Fit for the name of a directory.
std::string cleaned(std::string text) {
  for (char& c : text) {
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (!good) c = '_';
  }
  return text.substr(0, 128);
}

struct ProcessStat {
  std::string name;
  int parent = 0;
  std::string started;
};

// Fields 2, 4 and 22 of /proc/PID/stat; the name stands in parentheses and may hold anything.
bool read_stat(int pid, ProcessStat& stat) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return false;
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return false;
  stat.name = line.substr(open + 1, close - open - 1);
  std::istringstream rest(line.substr(close + 1));
  std::string field;
  for (int number = 3; number <= 22 && rest >> field; ++number) {
    if (number == 4) stat.parent = std::atoi(field.c_str());
    if (number == 22) stat.started = field;
  }
  return true;
}

// The process that started this node's ranks: the same for all of them, whatever shells stand between.
std::string launcher_process() {
  constexpr std::string_view kLaunchers[] = {"hydra_pmi_proxy", "hydra_bstrap_pr", "prted",   "prterun",
                                             "orted",           "slurmstepd",      "mpiexec", "mpirun"};
  ProcessStat stat;
  int pid = getpid();
  while (pid > 1 && read_stat(pid, stat)) {
    for (const std::string_view name : kLaunchers) {
      if (stat.name.rfind(name.substr(0, 15), 0) == 0) return fmt::format("launcher-{}-{}", pid, stat.started);
    }
    pid = stat.parent;
  }
  return "";
}

}  // namespace

std::string job_name() {
  if (const std::string given = environment("SPILLWAY_JOB"); !given.empty()) return cleaned(given);
  if (const std::string name = environment("PMIX_NAMESPACE"); !name.empty()) return cleaned("pmix-" + name);
  if (const std::string job = environment("SLURM_JOB_ID"), step = environment("SLURM_STEP_ID");
      !job.empty() && !step.empty()) {
    return cleaned("slurm-" + job + "-" + step);
  }
  if (const std::string launcher = launcher_process(); !launcher.empty()) return launcher;
  return fmt::format("single-{}", getpid());
}

int local_process_count() {
  for (const char* name :
       {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"}) {
    const int count = std::atoi(environment(name).c_str());
    if (count > 0) return count;
  }
  return 0;
}

}  // namespace spillway::mpi
