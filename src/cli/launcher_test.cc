#include "cli/launcher.h"

#include <gtest/gtest.h>

namespace spillway::cli {
namespace {

TEST(LauncherOfVersion, TellsTheFamiliesApart) {
  struct Case {
    const char* name;
    const char* answer;
    LauncherFamily family;
    std::optional<MpiAbi> abi;
    const char* version;
  };
  const Case cases[] = {
      {"mpiexec", "HYDRA build details:\n    Version:                                 5.0.2\n    Release",
       LauncherFamily::hydra, MpiAbi::mpich, "MPICH 5.0.2"},
      {"mpirun", "Intel(R) MPI Library for Linux* OS, Version 2021.19 Build 2025 (id: x)\nCopyright",
       LauncherFamily::hydra, MpiAbi::mpich, "Intel MPI 2021.19"},
      {"mpirun", "mpirun (Open MPI) 4.1.4\n\nReport bugs", LauncherFamily::orte, MpiAbi::openmpi, "Open MPI 4.1.4"},
      {"mpirun.openmpi", "mpirun.openmpi (OpenRTE) 4.1.4\n", LauncherFamily::orte, MpiAbi::openmpi, "Open MPI 4.1.4"},
      {"mpiexec", "mpiexec (Open MPI) 5.0.11\n", LauncherFamily::prrte, MpiAbi::openmpi, "Open MPI 5.0.11"},
      {"prterun", "prterun (PRRTE) 3.0.5\n", LauncherFamily::prrte, std::nullopt, "prterun (PRRTE) 3.0.5"},
      {"srun", "slurm 22.05.8\n", LauncherFamily::srun, std::nullopt, "slurm 22.05.8"},
  };
  for (const Case& known : cases) {
    const std::optional<Launcher> launcher = launcher_of_version(known.name, known.answer);
    ASSERT_TRUE(launcher.has_value()) << known.answer;
    EXPECT_EQ(launcher->family, known.family) << known.answer;
    EXPECT_EQ(launcher->abi, known.abi) << known.answer;
    EXPECT_EQ(launcher->version, known.version);
  }
  EXPECT_FALSE(launcher_of_version("mpiexec", "Version: 0.85, PBS mpiexec").has_value());
  EXPECT_FALSE(launcher_of_version("mpiexec", "").has_value());
}

TEST(LauncherNames, OnlyThoseThatAreSafeToAsk) {
  for (const char* name : {"mpiexec", "mpirun", "mpiexec.hydra", "mpirun.openmpi", "orterun", "prterun", "srun"}) {
    EXPECT_TRUE(is_launcher_name(name)) << name;
  }
  for (const char* name : {"mpiexecute", "mpirunner", "my_mpirun", "srun2", "python3", ""}) {
    EXPECT_FALSE(is_launcher_name(name)) << name;
  }
  EXPECT_TRUE(is_unsupported_launcher("aprun"));
  EXPECT_FALSE(is_unsupported_launcher("mpirun"));
}

}  // namespace
}  // namespace spillway::cli
