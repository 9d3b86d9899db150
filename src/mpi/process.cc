#include "mpi/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "base/file_patterns.h"
#include "base/inside.h"
#include "base/log.h"
#include "base/summary.h"
#include "mpi/api.h"
#include "mpi/handle.h"
#include "mpi/job.h"

namespace spillway::mpi {
namespace {

// Set once, before anything is taken down; whoever reads it decides only whether to be collective: relaxed.
std::atomic<bool> g_ending{false};

int watch_stays(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}
int finalize_begins(MPI_Comm, int, void*, void*) {
  g_ending.store(true, std::memory_order_relaxed);
  if (!any_handle()) Process::instance().finish();
  return MPI_SUCCESS;
}

// Attributes of MPI_COMM_SELF are deleted first of all in MPI_Finalize (MPI-4.1 §11.2.4). A program that only has sessions has no
// MPI_COMM_SELF, and no such moment either.
void watch_for_finalize() {
  int initialized = 0;
  api().Initialized(&initialized);
  if (initialized == 0) return;
  int keyval = MPI_KEYVAL_INVALID;
  api().Comm_create_keyval(&watch_stays, &finalize_begins, &keyval, nullptr);
  api().Comm_set_attr(api().comm_self, keyval, nullptr);
}

int world_rank() {
  int initialized = 0;
  int rank = 0;
  api().Initialized(&initialized);
  if (initialized != 0) api().Comm_rank(api().comm_world, &rank);  // not so in a program that only has sessions
  return rank;
}

int world_size() {
  int initialized = 0;
  int size = 1;
  api().Initialized(&initialized);
  if (initialized != 0) api().Comm_size(api().comm_world, &size);
  return size;
}

}  // namespace

bool mpi_is_ending() {
  int finalized = 1;
  if (!g_ending.load(std::memory_order_relaxed)) api().Finalized(&finalized);
  return finalized != 0;
}

Process& Process::instance() {
  // Never destroyed: threads of the program may still be in a call when the process ends.
  static Process* process = new Process();
  return *process;
}

void Process::load_settings() {
  if (settings_loaded_) return;
  settings_loaded_ = true;
  const base::EnvironmentList environment = base::spillway_environment();
  Result<base::Settings> settings = base::load_settings(environment, base::configuration_file(environment));
  if (!settings) {
    why_not_ = settings.status().what();
    // Which files are managed must be known all the same.
    for (const auto& [name, value] : environment) {
      if (name == "SPILLWAY_FILES") (void)base::set_option(settings_, "files", value, name);
    }
    return;
  }
  settings_ = std::move(settings).value();
  base::set_log_level(settings_.log_level);
  usable_ = true;
}

bool Process::manages(const std::string& path) {
  base::MutexLock lock(mutex_);
  load_settings();
  return !finished_ && base::managed(settings_, path);
}

file::Runtime* Process::runtime() {
  file::Runtime* runtime = nullptr;
  bool started = false;
  {
    base::MutexLock lock(mutex_);
    if (!tried_) {
      tried_ = started = true;
      start();
    }
    runtime = finished_ ? nullptr : runtime_.get();
  }
  // Not under the lock: an MPI that objects may end the process here, and the end takes the lock.
  if (started && runtime != nullptr) watch_for_finalize();
  return runtime;
}

file::Runtime* Process::runtime_if_started() {
  base::MutexLock lock(mutex_);
  return finished_ ? nullptr : runtime_.get();
}

void Process::start() {
  load_settings();
  const int rank = world_rank();
  base::set_log_rank(rank);
  if (!usable_) return;
  pid_ = getpid();
  Result<std::unique_ptr<journal::Node>> node = journal::Node::attach(settings_.shm_dir, job_name());
  if (!node) {
    why_not_ = node.status().what();
    return;
  }
  const int here = local_process_count();  // 0: the launcher does not say
  Result<std::unique_ptr<file::Runtime>> runtime =
      file::Runtime::start(**node, {.settings = settings_,
                                    .rank = rank,
                                    .node_processes = here > 0 ? here : world_size(),
                                    .spans_nodes = here > 0 && here < world_size(),
                                    .backend = nullptr});
  if (!runtime) {
    why_not_ = runtime.status().what();
    return;
  }
  node_ = std::move(node).value();
  runtime_ = std::move(runtime).value();
}

void Process::say_why_not(const std::string& reason) {
  std::string text;
  {
    base::MutexLock lock(mutex_);
    if (said_why_not_) return;
    said_why_not_ = true;
    text = reason.empty() ? why_not_ : reason;
  }
  if (text.empty()) return;  // the end has come: nobody wants to know
  base::log_error(fmt::format("cannot start: {}; the program runs without Spillway", text));
}

void Process::finish() {
  const base::Inside inside;
  {
    base::MutexLock lock(mutex_);
    if (finished_ || runtime_ == nullptr || pid_ != getpid())
      return;  // a forked child has no thread and nothing of its own
    finished_ = true;
  }
  // Waits for the storage; not under the lock, so that nobody else who looks has to.
  const std::optional<base::RunSummary> totals = runtime_->finish();
  node_->leave();
  if (totals) report(*totals);
}

void Process::report(const base::RunSummary& totals) const {
  base::RunSummary summary = totals;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  summary.node = host;
  // `spillway run` collects the nodes' lines; where its file cannot be reached this node speaks for itself.
  if (const char* path = std::getenv("SPILLWAY_SUMMARY_FILE"); path != nullptr) {
    const base::UniqueFd fd(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    const std::string line = base::summary_line(summary) + "\n";
    if (fd.valid() && write(fd.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size())) return;
  }
  bool wanted = true;
  {
    base::MutexLock lock(mutex_);
    wanted = settings_.summary;
  }
  base::set_log_rank(-1);
  if (wanted) base::log(base::LogLevel::error, base::summary_text(summary));
}

namespace {

// A program that never finalizes loses nothing either.
[[gnu::destructor]] void end_of_process() { Process::instance().finish(); }

}  // namespace

}  // namespace spillway::mpi
