#include "cli/find_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::cli {
namespace {

using ::testing::HasSubstr;

std::size_t wrapped(const std::vector<std::string>& words) { return wrapper_words(words); }

TEST(WrapperWords, CountsWhatBelongsToTheWrapper) {
  EXPECT_EQ(wrapped({"env", "A=1", "B=", "./a.out", "C=3"}), 3U);
  EXPECT_EQ(wrapped({"/usr/bin/env", "-u", "X", "./a.out"}), 3U);
  EXPECT_EQ(wrapped({"nice", "-n", "5", "./a.out"}), 3U);
  EXPECT_EQ(wrapped({"nice", "-10", "./a.out"}), 2U);
  EXPECT_EQ(wrapped({"timeout", "-k", "5", "60", "./a.out"}), 4U);
  EXPECT_EQ(wrapped({"taskset", "-c", "0-3", "./a.out"}), 3U);
  EXPECT_EQ(wrapped({"numactl", "--membind=0", "-C", "0,1", "./a.out"}), 4U);
  EXPECT_EQ(wrapped({"gdb", "-ex", "run", "--args", "./a.out", "x"}), 4U);
  EXPECT_EQ(wrapped({"strace", "-f", "-o", "out", "--", "./a.out"}), 5U);
}

TEST(WrapperWords, NothingWhereTheCommandIsNotUnderstood) {
  EXPECT_EQ(wrapped({}), 0U);
  EXPECT_EQ(wrapped({"./a.out"}), 0U);
  EXPECT_EQ(wrapped({"env"}), 0U);
  EXPECT_EQ(wrapped({"env", "-S", "A=1 ./a.out"}), 0U);
  EXPECT_EQ(wrapped({"gdb", "./a.out"}), 0U);
  EXPECT_EQ(wrapped({"timeout", "60"}), 0U);
  EXPECT_EQ(wrapped({"bash", "-c", "./a.out"}), 0U);
}

TEST(WrapperClearsEnvironment, OnlyAsAnOptionOfEnv) {
  EXPECT_TRUE(wrapper_clears_environment(std::vector<std::string>{"env", "-i", "./a.out"}));
  EXPECT_TRUE(wrapper_clears_environment(std::vector<std::string>{"env", "-", "A=1", "./a.out"}));
  EXPECT_FALSE(wrapper_clears_environment(std::vector<std::string>{"env", "./a.out", "-i"}));
  EXPECT_FALSE(wrapper_clears_environment(std::vector<std::string>{"strace", "-i", "./a.out"}));
}

TEST(FindProgram, SearchesAsALauncherDoes) {
  EXPECT_TRUE(find_program("/bin/sh", {}).value().ends_with("/sh"));
  EXPECT_TRUE(find_program("sh", {}).value().ends_with("/sh"));
  const SearchPlace fixtures{CLI_FIXTURES "/bin", "", false};
  EXPECT_EQ(find_program("./program_plain", fixtures).value(), CLI_FIXTURES "/bin/./program_plain");
  EXPECT_EQ(find_program("program_plain", fixtures).status().code(), Code::no_such_file);
  EXPECT_EQ(find_program("program_plain", {CLI_FIXTURES "/bin", "", true}).value(), CLI_FIXTURES "/bin/program_plain");
}

TEST(FindProgram, SearchesTheDirectoriesOfTheLauncherFirst) {
  EXPECT_EQ(find_program("program_plain", {"", "/nowhere:" CLI_FIXTURES "/bin", false}).value(),
            CLI_FIXTURES "/bin/program_plain");
}

TEST(FindProgram, SaysWhatIsWrongWithWhich) {
  EXPECT_THAT(find_program("./no_such_program", {}).status().what(), HasSubstr("./no_such_program"));
  EXPECT_THAT(find_program("no_such_program", {}).status().what(), HasSubstr("'no_such_program' in PATH"));
  EXPECT_THAT(find_program("/etc/passwd", {}).status().what(), HasSubstr("/etc/passwd is not executable"));
  EXPECT_THAT(find_program("/tmp", {}).status().what(), HasSubstr("/tmp is a directory"));
  EXPECT_FALSE(find_program("", {}).ok());
}

}  // namespace
}  // namespace spillway::cli
