#include "cli/launch_syntax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/words.h"

namespace spillway::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

LaunchCommand parsed(LauncherFamily family, const std::string& text) {
  Result<LaunchCommand> command = parse_launch(family, split(text, ' '), 0);
  EXPECT_TRUE(command.ok()) << text << ": " << command.status().to_string();
  return command.ok() ? std::move(command.value()) : LaunchCommand{};
}

// The programs of all contexts.
std::vector<std::string> programs(LauncherFamily family, const std::string& text) {
  std::vector<std::string> found;
  const LaunchCommand command = parsed(family, text);
  for (const AppContext& context : command.contexts) {
    found.push_back(context.program_at < context.end ? command.words[context.program_at] : "");
  }
  return found;
}

TEST(ParseLaunch, FindsTheProgramBehindTheOptions) {
  struct Case {
    LauncherFamily family;
    const char* command;
  };
  const Case cases[] = {
      {LauncherFamily::none, "./a -n 4"},
      {LauncherFamily::hydra, "mpiexec ./a"},
      {LauncherFamily::hydra, "mpiexec -n 4 ./a -n 5"},
      {LauncherFamily::hydra, "mpiexec --np 4 -ppn 2 -hosts h1,h2 -bind-to core ./a"},
      {LauncherFamily::hydra, "mpiexec -n=4 -verbose ./a"},
      {LauncherFamily::hydra, "mpiexec -genv A 1 -genv B=2 -genvall -env C 3 -n 1 ./a"},
      {LauncherFamily::hydra, "mpiexec -pmi-args 1 2 3 4 ./a"},
      {LauncherFamily::hydra, "mpirun -perhost 2 -trace -l -gtool x:0 ./a"},
      {LauncherFamily::prrte, "mpirun -np 4 --map-by ppr:2:node:PE=2 --bind-to core ./a -x"},
      {LauncherFamily::prrte, "mpirun --mca btl self,vader -x A -x B=1 -n4 --oversubscribe ./a"},
      {LauncherFamily::prrte, "mpirun --display-topo all --dvm file:x -H h1,h2 ./a"},
      {LauncherFamily::prrte, "mpirun --np=2 -- ./a"},
      {LauncherFamily::orte, "mpirun -c 4 --display-topo --dvm -tag-output -rf ranks ./a"},
      {LauncherFamily::orte, "mpirun --allow-run-as-root --hostfile h --mca io romio321 ./a"},
      {LauncherFamily::srun, "srun ./a"},
      {LauncherFamily::srun, "srun -n4 -N 2 --mpi=pmix --cpu-bind cores ./a -n 1"},
      {LauncherFamily::srun, "srun -lun 4 --exclusive --kill-on-bad-exit=1 ./a"},
      {LauncherFamily::srun, "srun -K1 -vvv --label -p debug -t 10 -- ./a"},
  };
  for (const Case& known : cases) {
    EXPECT_THAT(programs(known.family, known.command), ElementsAre("./a")) << known.command;
    EXPECT_THAT(parsed(known.family, known.command).notes, IsEmpty()) << known.command;
  }
}

TEST(ParseLaunch, SplitsSeveralProgramsAtTheColon) {
  EXPECT_THAT(programs(LauncherFamily::hydra, "mpiexec -n 1 ./a x : -n 2 -env A 1 ./b : ./c"),
              ElementsAre("./a", "./b", "./c"));
  EXPECT_THAT(programs(LauncherFamily::prrte, "mpirun -n 1 ./a : -x A=1 -n 2 ./b y"), ElementsAre("./a", "./b"));
  EXPECT_THAT(programs(LauncherFamily::srun, "srun --het-group=0 ./a : --het-group=1 -n2 ./b"),
              ElementsAre("./a", "./b"));
  const LaunchCommand command = parsed(LauncherFamily::hydra, "mpiexec -n 1 ./a x : -n 2 ./b");
  EXPECT_EQ(command.contexts[0].end, 5U);
  EXPECT_EQ(command.contexts[1].options_at, 6U);
  EXPECT_EQ(command.contexts[1].end, 9U);
}

TEST(ParseLaunch, NotesTheWorkingDirectory) {
  EXPECT_EQ(parsed(LauncherFamily::hydra, "mpiexec -wdir /w ./a").contexts[0].working_directory, "/w");
  EXPECT_EQ(parsed(LauncherFamily::prrte, "mpirun --wd=/w ./a").contexts[0].working_directory, "/w");
  EXPECT_EQ(parsed(LauncherFamily::srun, "srun --chdir /w ./a").contexts[0].working_directory, "/w");
  EXPECT_EQ(parsed(LauncherFamily::srun, "srun -D/w ./a").contexts[0].working_directory, "/w");
  EXPECT_EQ(parsed(LauncherFamily::srun, "srun -D /w ./a").contexts[0].working_directory, "/w");
}

TEST(ParseLaunch, NotesTheSearchPath) {
  EXPECT_EQ(parsed(LauncherFamily::hydra, "mpiexec -path /p ./a").contexts[0].search_path, "/p");
  EXPECT_EQ(parsed(LauncherFamily::orte, "mpirun --path /p ./a").contexts[0].search_path, "/p");
}

TEST(ParseLaunch, NotesTheVariablesOfTheUser) {
  const LaunchCommand hydra = parsed(LauncherFamily::hydra, "mpiexec -genv A 1 -env B=2 -n 1 ./a");
  ASSERT_THAT(hydra.contexts[0].variables, SizeIs(2));
  EXPECT_EQ(hydra.contexts[0].variables[0].name, "A");
  EXPECT_EQ(hydra.contexts[0].variables[0].value, "1");
  EXPECT_TRUE(hydra.contexts[0].variables[0].global);
  EXPECT_EQ(hydra.contexts[0].variables[0].tail.at, 3U);
  EXPECT_EQ(hydra.contexts[0].variables[1].value, "2");
  EXPECT_FALSE(hydra.contexts[0].variables[1].global);
  const LaunchCommand prrte = parsed(LauncherFamily::prrte, "mpirun -x A -x B=2=3 -n 1 ./a");
  ASSERT_THAT(prrte.contexts[0].variables, SizeIs(2));
  EXPECT_FALSE(prrte.contexts[0].variables[0].has_value);
  EXPECT_EQ(prrte.contexts[0].variables[1].value, "2=3");
  EXPECT_THAT(parsed(LauncherFamily::srun, "srun --export=A='x,y',ALL ./a").contexts[0].exports,
              ElementsAre("A='x,y'", "ALL"));
}

TEST(ParseLaunch, FilesThatNameThePrograms) {
  EXPECT_EQ(parsed(LauncherFamily::hydra, "mpiexec -configfile f").contexts[0].program_list, "f");
  const LaunchCommand srun = parsed(LauncherFamily::srun, "srun -n4 --multi-prog f");
  EXPECT_TRUE(srun.contexts[0].multi_prog);
  EXPECT_EQ(srun.contexts[0].program_list, "f");
  EXPECT_THAT(parse_launch(LauncherFamily::prrte, split("mpirun --app f", ' '), 0).status().what(), HasSubstr("--app"));
}

TEST(ParseLaunch, AGuessIsNoted) {
  const LaunchCommand value = parsed(LauncherFamily::hydra, "mpiexec -novel 3 ./a");
  EXPECT_EQ(value.words[value.contexts[0].program_at], "./a");
  EXPECT_THAT(value.notes, ElementsAre(HasSubstr("'-novel' is not known to Spillway; it was taken to have one value")));
  const LaunchCommand flag = parsed(LauncherFamily::hydra, "mpiexec -novel /bin/sh x");
  EXPECT_EQ(flag.words[flag.contexts[0].program_at], "/bin/sh");
  EXPECT_THAT(flag.notes, ElementsAre(HasSubstr("no value")));
}

TEST(ParseLaunch, ACommandWithoutAProgramIsRefused) {
  for (const char* command : {"mpiexec", "mpiexec -n 4", "mpiexec -n", "mpiexec -n 1 ./a : -n 2", "mpiexec -genv A"}) {
    const Result<LaunchCommand> result = parse_launch(LauncherFamily::hydra, split(command, ' '), 0);
    ASSERT_FALSE(result.ok()) << command;
    EXPECT_THAT(result.status().what(), HasSubstr("no program found behind the options of mpiexec")) << command;
  }
}

TEST(ParseLaunch, WrappersOfTheLauncherAreLeftAlone) {
  Result<LaunchCommand> command = parse_launch(LauncherFamily::hydra, split("timeout 60 mpiexec -n 1 ./a", ' '), 2);
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->contexts[0].options_at, 3U);
  EXPECT_EQ(command->contexts[0].program_at, 5U);
}

}  // namespace
}  // namespace spillway::cli
