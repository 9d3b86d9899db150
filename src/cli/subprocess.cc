#include "cli/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "base/clock.h"
#include "base/fd.h"

namespace spillway::cli {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// A null-terminated array of C strings whose texts it keeps.
class CStrings {
 public:
  explicit CStrings(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  CStrings(const CStrings&) = delete;
  CStrings& operator=(const CStrings&) = delete;
  [[nodiscard]] char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

std::string_view name_of_entry(std::string_view entry) { return entry.substr(0, entry.find('=')); }

std::vector<std::string> environment_with(const EnvironmentList& changes, const std::vector<std::string>& without) {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view name = name_of_entry(*entry);
    const auto changed = [&](const auto& change) { return change.first == name; };
    if (std::ranges::any_of(changes, changed) || std::ranges::find(without, name) != without.end()) continue;
    entries.emplace_back(*entry);
  }
  for (const auto& [name, value] : changes) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::int64_t now_ms() { return base::system_clock().now_ns() / 1000000; }

// Waits for a child that has closed its output; false when the time was over before.
bool wait_until(pid_t pid, std::int64_t deadline_ms, int& exit_code) {
  constexpr timespec kPause{0, 1000000};
  int wait_status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(pid, &wait_status, WNOHANG);
    if (ended == pid) exit_code = exit_code_of(wait_status);
    if (ended != 0 && !(ended < 0 && errno == EINTR)) return ended == pid;
    if (now_ms() >= deadline_ms) return false;
    ::nanosleep(&kPause, nullptr);
  }
}

// Reads until the end of the stream; false when the time was over before.
bool read_until(int fd, std::int64_t deadline_ms, std::string& text) {
  for (;;) {
    const std::int64_t left_ms = deadline_ms - now_ms();
    if (left_ms <= 0) return false;
    pollfd wait{fd, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(left_ms));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char buffer[4096];
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    text.append(buffer, std::min(static_cast<std::size_t>(count), kCapturedBytesMax - text.size()));
  }
}

Result<pid_t> spawn(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                    const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes) {
  const CStrings arguments(argv);
  const CStrings variables(environment);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv.front().c_str(), actions, attributes, arguments.get(), variables.get());
  if (error != 0) return Status::from_errno(error, fmt::format("cannot start {}", argv.front()));
  return pid;
}

// Passes signals on until the child has ended.
int forward_until_end(pid_t pid, const sigset_t& awaited) {
  for (;;) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&awaited, &info);
    if (signal < 0) continue;
    if (signal != SIGCHLD) {
      // What the terminal sends goes to the whole process group; a launcher that got it twice would kill its
      // job.
      if (info.si_code != SI_KERNEL) ::kill(pid, signal);
      continue;
    }
    int wait_status = 0;
    if (::waitpid(pid, &wait_status, WNOHANG) == pid) return exit_code_of(wait_status);
  }
}

}  // namespace

Result<CapturedOutput> capture(const std::vector<std::string>& argv, int timeout_ms,
                               const std::vector<std::string>& without) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno(errno, "pipe");
  const base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDERR_FILENO);
  const Result<pid_t> pid = spawn(argv, environment_with({}, without), &actions, nullptr);
  ::posix_spawn_file_actions_destroy(&actions);
  if (!pid.ok()) return pid.status();
  write_end.reset();
  CapturedOutput output;
  const std::int64_t deadline_ms = now_ms() + timeout_ms;
  if (read_until(read_end.get(), deadline_ms, output.text) && wait_until(pid.value(), deadline_ms, output.exit_code)) {
    return output;
  }
  ::kill(pid.value(), SIGKILL);
  ::waitpid(pid.value(), nullptr, 0);
  return Status(Code::peer_lost, fmt::format("{} gave no answer within {} ms", argv.front(), timeout_ms));
}

Result<int> run_child(const std::vector<std::string>& argv, const EnvironmentList& changes) {
  sigset_t awaited;
  sigset_t before;
  sigemptyset(&awaited);
  for (const int signal : kForwarded) sigaddset(&awaited, signal);
  sigaddset(&awaited, SIGCHLD);
  ::signal(SIGCHLD, SIG_DFL);
  ::pthread_sigmask(SIG_BLOCK, &awaited, &before);
  posix_spawnattr_t attributes{};
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &before);
  const Result<pid_t> pid = spawn(argv, environment_with(changes, {}), nullptr, &attributes);
  ::posix_spawnattr_destroy(&attributes);
  Result<int> result = pid.ok() ? Result<int>(forward_until_end(pid.value(), awaited)) : Result<int>(pid.status());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

}  // namespace spillway::cli
