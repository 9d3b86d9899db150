#include "cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace spillway::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const SearchPlace kFixtures{CLI_FIXTURES "/bin", "", false};

Result<Program> inspect(const std::vector<std::string>& words) { return inspect_program(words, kFixtures); }

std::string refusal(const std::vector<std::string>& words) {
  const Result<Program> program = inspect(words);
  EXPECT_FALSE(program.ok());
  return program.status().what();
}

TEST(InspectProgram, FindsTheMpiOfAProgram) {
  const Result<Program> mpich = inspect({"./program_mpich", "input"});
  ASSERT_TRUE(mpich.ok()) << mpich.status().to_string();
  EXPECT_EQ(mpich.value().abi, MpiAbi::mpich);
  EXPECT_EQ(mpich.value().mpi_library.soname, "libmpi.so.12");
  EXPECT_FALSE(mpich.value().interpreted);
  EXPECT_EQ(inspect({"./program_openmpi"}).value().abi, MpiAbi::openmpi);
}

TEST(InspectProgram, FindsAnMpiBehindAnotherLibraryAndBehindWrappers) {
  const Result<Program> program = inspect({"nice", "-n", "3", "env", "A=1", "./program_solver"});
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_EQ(program.value().abi, MpiAbi::mpich);
  EXPECT_THAT(program.value().wrappers, ElementsAre("nice", "env"));
  EXPECT_EQ(program.value().word, "./program_solver");
}

TEST(InspectProgram, AProgramWithoutMpiShowsNone) {
  const Result<Program> program = inspect({"./program_plain"});
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_EQ(program.value().abi, std::nullopt);
  EXPECT_FALSE(program.value().interpreted);
}

TEST(InspectProgram, ScriptsAndInterpretersSayNothingOfTheirMpi) {
  const std::string path = testing::TempDir() + "spillway_script_" + std::to_string(::getpid());
  std::ofstream(path) << "#!/usr/bin/env python3\n";
  ::chmod(path.c_str(), 0755);
  const Result<Program> script = inspect({path});
  ::unlink(path.c_str());
  ASSERT_TRUE(script.ok()) << script.status().to_string();
  EXPECT_TRUE(script.value().interpreted);
  EXPECT_TRUE(inspect({"sh", "-c", "./program_mpich"}).value().interpreted);
}

TEST(InspectProgram, RefusesWhatLdPreloadCannotReach) {
  EXPECT_THAT(refusal({"./program_static"}), HasSubstr("program_static is a static binary"));
  EXPECT_THAT(refusal({"./program_old_mpi"}), HasSubstr("program_old_mpi is linked to libmpi.so.20"));
  EXPECT_THAT(refusal({"./program_two_mpis"}), HasSubstr("program_two_mpis is linked to two MPIs"));
  EXPECT_THAT(refusal({"env", "-i", "./program_mpich"}), HasSubstr("env -i empties the environment"));
  EXPECT_THAT(refusal({"./program_nowhere"}), HasSubstr("there is no program"));
}

TEST(InspectProgram, RefusesFilesThatAreNoPrograms) {
  const std::string path = testing::TempDir() + "spillway_text_" + std::to_string(::getpid());
  std::ofstream(path) << "echo hello\n";
  ::chmod(path.c_str(), 0755);
  EXPECT_THAT(refusal({path}), HasSubstr("is neither an ELF program nor a script"));
  std::ofstream(path) << "\177ELF\1\1\1" << std::string(64, '\0');
  EXPECT_THAT(refusal({path}), HasSubstr("is a 32-bit program"));
  ::unlink(path.c_str());
}

TEST(InspectProgram, RefusesProgramsThatGainRights) {
  const std::string path = testing::TempDir() + "spillway_suid_" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary) << std::ifstream(CLI_FIXTURES "/bin/program_mpich", std::ios::binary).rdbuf();
  // Only root may give a file to someone else.
  if (::chown(path.c_str(), 65534, 65534) != 0) {
    ::unlink(path.c_str());
    GTEST_SKIP() << "needs the right to give files away";
  }
  ::chmod(path.c_str(), 04755);
  EXPECT_THAT(refusal({path}), HasSubstr("is set-user-ID"));
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace spillway::cli
