#include "cli/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace spillway::cli {
namespace {

using ::testing::HasSubstr;

TEST(Capture, CollectsBothStreamsAndTheExitCode) {
  const Result<CapturedOutput> output = capture({"sh", "-c", "echo out; echo err >&2; exit 3"}, 10000);
  ASSERT_TRUE(output.ok()) << output.status().to_string();
  EXPECT_EQ(output.value().text, "out\nerr\n");
  EXPECT_EQ(output.value().exit_code, 3);
}

TEST(Capture, KeepsABoundedAmount) {
  const Result<CapturedOutput> output = capture({"head", "-c", "3000000", "/dev/zero"}, 10000);
  ASSERT_TRUE(output.ok()) << output.status().to_string();
  EXPECT_EQ(output.value().text.size(), kCapturedBytesMax);
}

TEST(Capture, HidesVariables) {
  ::setenv("SPILLWAY_SUBPROCESS_TEST", "x", 1);
  EXPECT_EQ(capture({"sh", "-c", "echo [$SPILLWAY_SUBPROCESS_TEST]"}, 10000).value().text, "[x]\n");
  EXPECT_EQ(capture({"sh", "-c", "echo [$SPILLWAY_SUBPROCESS_TEST]"}, 10000, {"SPILLWAY_SUBPROCESS_TEST"}).value().text,
            "[]\n");
  ::unsetenv("SPILLWAY_SUBPROCESS_TEST");
}

TEST(Capture, EndsAProgramThatGivesNoAnswer) {
  EXPECT_EQ(capture({"sleep", "100"}, 50).status().code(), Code::peer_lost);
  EXPECT_EQ(capture({"sh", "-c", "exec >&- 2>&-; sleep 100"}, 50).status().code(), Code::peer_lost);
}

TEST(Capture, NamesAProgramThatCannotBeStarted) {
  EXPECT_THAT(capture({"/no/such/program"}, 1000).status().what(), HasSubstr("/no/such/program"));
}

TEST(RunChild, ReturnsTheExitCodeOrTheSignal) {
  EXPECT_EQ(run_child({"sh", "-c", "exit 7"}, {}).value(), 7);
  EXPECT_EQ(run_child({"sh", "-c", "kill -9 $$"}, {}).value(), 128 + SIGKILL);
  EXPECT_EQ(run_child({"/no/such/program"}, {}).status().code(), Code::no_such_file);
}

TEST(RunChild, HandsOverChangedVariables) {
  EXPECT_EQ(run_child({"sh", "-c", "test \"$A-$B\" = '1-x y'"}, {{"A", "1"}, {"B", "x y"}}).value(), 0);
}

TEST(RunChild, PassesSignalsOn) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT}) {
    // The child signals its parent, which is this process, and waits for the signal to come back.
    const std::string name = std::to_string(signal);
    const Result<int> code =
        run_child({"sh", "-c", "trap 'exit 42' " + name + "; kill -" + name + " $PPID; while :; do :; done"}, {});
    ASSERT_TRUE(code.ok()) << code.status().to_string();
    EXPECT_EQ(code.value(), 42) << signal;
  }
}

}  // namespace
}  // namespace spillway::cli
