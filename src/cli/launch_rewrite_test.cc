#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/launch_plan.h"
#include "cli/words.h"

namespace spillway::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string text_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Invocation rewritten(LauncherFamily family, const std::string& command, const std::string& before = "") {
  const Result<LaunchCommand> parsed = parse_launch(family, split(command, ' '), 0);
  EXPECT_TRUE(parsed.ok()) << command;
  if (!parsed.ok()) return {};
  return rewrite_launch(parsed.value(), "/s.so", before, {{"SPILLWAY_STAGE", "none"}, {"SPILLWAY_JOB", "j"}});
}

struct RewriteCase {
  const char* command;
  const char* before;  // LD_PRELOAD in the environment
  const char* expected;
};

void check(LauncherFamily family, const std::vector<RewriteCase>& cases) {
  for (const RewriteCase& known : cases) {
    const Invocation invocation = rewritten(family, known.command, known.before);
    EXPECT_EQ(text_of(invocation.words), known.expected);
    EXPECT_THAT(invocation.environment, IsEmpty()) << known.command;
  }
}

TEST(RewriteLaunch, HydraTakesGenvInFrontOfEverything) {
  check(LauncherFamily::hydra,
        {{"mpiexec -n 4 ./a -genv", "",
          "mpiexec -genv SPILLWAY_STAGE none -genv SPILLWAY_JOB j -genv LD_PRELOAD /s.so -n 4 ./a -genv"},
         {"mpiexec -n 1 ./a : -n 2 ./b", "",
          "mpiexec -genv SPILLWAY_STAGE none -genv SPILLWAY_JOB j -genv LD_PRELOAD /s.so -n 1 ./a : -n 2 ./b"},
         {"mpiexec ./a", "/d.so",
          "mpiexec -genv SPILLWAY_STAGE none -genv SPILLWAY_JOB j -genv LD_PRELOAD /d.so:/s.so ./a"}});
}

TEST(RewriteLaunch, HydraKeepsWhatTheUserHandsOver) {
  check(LauncherFamily::hydra,
        {{"mpiexec -genv LD_PRELOAD /u.so -genv SPILLWAY_STAGE memory ./a", "/d.so",
          "mpiexec -genv SPILLWAY_JOB j -genv LD_PRELOAD /u.so:/s.so -genv SPILLWAY_STAGE memory ./a"},
         {"mpiexec -genv LD_PRELOAD=/u.so ./a", "",
          "mpiexec -genv SPILLWAY_STAGE none -genv SPILLWAY_JOB j -genv LD_PRELOAD=/u.so:/s.so ./a"},
         {"mpiexec ./a : -env LD_PRELOAD /u.so ./b", "",
          "mpiexec -genv SPILLWAY_STAGE none -genv SPILLWAY_JOB j -genv LD_PRELOAD /s.so ./a : -env LD_PRELOAD "
          "/u.so:/s.so ./b"}});
}

TEST(RewriteLaunch, OpenMpiTakesXInEveryContext) {
  const std::vector<RewriteCase> cases = {
      {"mpirun -n 4 ./a", "", "mpirun -x SPILLWAY_STAGE=none -x SPILLWAY_JOB=j -x LD_PRELOAD=/s.so -n 4 ./a"},
      {"mpirun -n 1 ./a : ./b", "/d.so",
       "mpirun -x SPILLWAY_STAGE=none -x SPILLWAY_JOB=j -x LD_PRELOAD=/d.so:/s.so -n 1 ./a : -x "
       "SPILLWAY_STAGE=none -x "
       "SPILLWAY_JOB=j -x LD_PRELOAD=/d.so:/s.so ./b"},
      {"mpirun -x LD_PRELOAD=/u.so -x SPILLWAY_STAGE=memory ./a", "/d.so",
       "mpirun -x SPILLWAY_JOB=j -x LD_PRELOAD=/u.so:/s.so -x SPILLWAY_STAGE=memory ./a"},
      {"mpirun -x LD_PRELOAD ./a", "/d.so",
       "mpirun -x SPILLWAY_STAGE=none -x SPILLWAY_JOB=j -x LD_PRELOAD=/d.so:/s.so ./a"}};
  check(LauncherFamily::prrte, cases);
  check(LauncherFamily::orte, cases);
}

TEST(RewriteLaunch, SrunTakesExportAndTheVariablesInItsEnvironment) {
  const std::vector<RewriteCase> cases = {
      {"srun -n4 ./a", "", "srun --export=ALL,LD_PRELOAD=/s.so -n4 ./a"},
      {"srun ./a", "/d.so", "srun --export=ALL,LD_PRELOAD=/d.so:/s.so ./a"},
      {"srun --export=A,B=1 ./a", "", "srun --export=A,B=1,SPILLWAY_STAGE,SPILLWAY_JOB,LD_PRELOAD=/s.so ./a"},
      {"srun --export A,ALL ./a", "", "srun --export A,ALL,LD_PRELOAD=/s.so ./a"},
      {"srun --export=NONE ./a", "/d.so", "srun --export=SPILLWAY_STAGE,SPILLWAY_JOB,LD_PRELOAD=/d.so:/s.so ./a"},
      {"srun --export=ALL,LD_PRELOAD=/u.so ./a", "/d.so", "srun --export=ALL,LD_PRELOAD=/u.so:/s.so ./a"},
      {"srun --export=LD_PRELOAD,SPILLWAY_STAGE=memory ./a", "/d.so",
       "srun --export=SPILLWAY_STAGE=memory,SPILLWAY_JOB,LD_PRELOAD=/d.so:/s.so ./a"},
      {"srun ./a : --export=NONE ./b", "",
       "srun --export=ALL,LD_PRELOAD=/s.so ./a : --export=SPILLWAY_STAGE,SPILLWAY_JOB,LD_PRELOAD=/s.so ./b"}};
  for (const RewriteCase& known : cases) {
    const Invocation invocation = rewritten(LauncherFamily::srun, known.command, known.before);
    EXPECT_EQ(text_of(invocation.words), known.expected);
    EXPECT_THAT(invocation.environment, ElementsAre(Pair("SPILLWAY_STAGE", "none"), Pair("SPILLWAY_JOB", "j")));
  }
}

TEST(RewriteLaunch, SrunKeepsTheExportsOfItsEnvironment) {
  Result<LaunchCommand> command = parse_launch(LauncherFamily::srun, {"srun", "./a"}, 0);
  ASSERT_TRUE(command.ok());
  command->contexts[0].inherited_exports = {"A", "B=1"};
  EXPECT_EQ(text_of(rewrite_launch(command.value(), "/s.so", "", {}).words),
            "srun --export=A,B=1,LD_PRELOAD=/s.so ./a");
}

TEST(RewriteLaunch, WithoutALauncherTheEnvironmentCarriesAll) {
  const Invocation invocation = rewritten(LauncherFamily::none, "./a -n 4", "/d.so");
  EXPECT_EQ(text_of(invocation.words), "./a -n 4");
  EXPECT_THAT(invocation.environment, ElementsAre(Pair("SPILLWAY_STAGE", "none"), Pair("SPILLWAY_JOB", "j"),
                                                  Pair("LD_PRELOAD", "/d.so:/s.so")));
}

TEST(RewriteLaunch, TheLibraryIsNotAddedTwice) {
  EXPECT_THAT(rewritten(LauncherFamily::none, "./a", "/s.so:/d.so").environment,
              testing::Contains(Pair("LD_PRELOAD", "/s.so:/d.so")));
}

TEST(RewriteLaunch, ValuesWithBlanksStayOneWord) {
  const Result<LaunchCommand> command = parse_launch(LauncherFamily::hydra, {"mpiexec", "./a"}, 0);
  ASSERT_TRUE(command.ok());
  const Invocation invocation = rewrite_launch(command.value(), "/s.so", "", {{"SPILLWAY_FILES", "*.{h5,nc},a b"}});
  EXPECT_THAT(invocation.words, ElementsAre("mpiexec", "-genv", "SPILLWAY_FILES", "*.{h5,nc},a b", "-genv",
                                            "LD_PRELOAD", "/s.so", "./a"));
}

}  // namespace
}  // namespace spillway::cli
