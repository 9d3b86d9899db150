#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"

namespace spillway::cli {

using base::EnvironmentList;

struct CapturedOutput {
  int exit_code = 0;  // 128 + signal where a signal ended it
  std::string text;   // stdout and stderr together, at most kCapturedBytesMax
};
inline constexpr std::size_t kCapturedBytesMax = 1 << 20;

// Runs a program and collects what it prints; its stdin is empty. `without` names variables that it must not
// see. Blocks: until the program has closed its output and ended; at most `timeout_ms`, then it is killed.
// Fails: by errno; peer_lost when it was killed for the timeout.
Result<CapturedOutput> capture(const std::vector<std::string>& argv, int timeout_ms,
                               const std::vector<std::string>& without = {});

// Runs a program in this process group, with `changes` made to its environment, and waits for its end. INT,
// TERM, HUP, QUIT, USR1 and USR2 sent to this process are passed on; those of the terminal reach the program
// anyway. Returns its exit code, or 128 + signal.  Blocks: until it ends.  Fails: by errno, and then nothing
// was started. Threads: the only thread of the process, whose signal mask it changes.
Result<int> run_child(const std::vector<std::string>& argv, const EnvironmentList& changes);

}  // namespace spillway::cli
