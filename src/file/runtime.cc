#include "file/runtime.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/units.h"
#include "storage/posix_backend.h"

namespace spillway::file {
namespace {

std::int64_t node_memory_bytes() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
}

std::int64_t file_system_bytes(const std::string& path) {
  struct statvfs fs {};
  if (statvfs(path.c_str(), &fs) != 0) return 0;
  return static_cast<std::int64_t>(fs.f_blocks) * static_cast<std::int64_t>(fs.f_frsize);
}

}  // namespace

Runtime::Runtime(journal::Node& node, Options options)
    : node_(node), options_(std::move(options)), activity_(base::system_clock()) {}

Result<std::unique_ptr<Runtime>> Runtime::start(journal::Node& node, Options options) {
  std::unique_ptr<Runtime> runtime(new Runtime(node, std::move(options)));
  const base::Settings& settings = runtime->options_.settings;
  if (runtime->options_.backend == nullptr) runtime->options_.backend = storage::make_posix_backend(settings.direct);

  const std::int64_t memory = node_memory_bytes();
  runtime->default_limit_ =
      settings.memory_bytes >= 0
          ? settings.memory_bytes
          : base::automatic_memory_bytes(memory, file_system_bytes(settings.shm_dir), runtime->options_.node_processes);
  if (!settings.trace_dir.empty()) {
    Result<std::unique_ptr<base::Trace>> trace = base::Trace::open(settings.trace_dir, runtime->options_.rank);
    if (trace.ok()) {
      runtime->trace_ = std::move(trace).value();
    } else {
      base::log_error("no trace: " + trace.status().to_string());
    }
  }

  Result<std::unique_ptr<journal::Journal>> journal =
      journal::Journal::create(node, {.segment_payload_bytes = settings.drain_bytes,
                                      .capacity_bytes = std::max(memory, runtime->default_limit_),
                                      .scratch_bytes = settings.cycle_bytes,
                                      .rank = runtime->options_.rank});
  if (!journal) return journal.status();
  runtime->journal_ = std::move(journal).value();
  runtime->pending_ = std::make_unique<journal::Pending>(node, *runtime->journal_);
  runtime->drain_ = std::make_unique<drain::Drain>(drain::Drain::Parts{
      node, *runtime->journal_, *runtime->pending_, runtime->activity_, base::system_clock(), runtime->trace_.get()});
  runtime->drain_->start();
  return runtime;
}

Runtime::~Runtime() { (void)finish(); }

std::optional<base::RunSummary> Runtime::finish() {
  if (finished_ || drain_ == nullptr) return std::nullopt;
  finished_ = true;
  {
    const base::Activity::Call call(activity_);
    const TraceScope scope(*this, "finalize", "");
    drain_->finish();
  }
  const std::int64_t left = journal_->pending_bytes();
  if (left > 0) {
    base::log_error(fmt::format(
        "{} could not be written and stay in {}; free the space or mend the file system, then run: spillway recover",
        base::format_bytes(left), node_.journal_path(journal_->process())));
  }
  base::RunSummary summary = activity_.summary();
  summary.pending_bytes = left;
  const std::uint32_t process = journal_->process();
  drain_.reset();
  pending_.reset();
  journal_.reset();
  trace_.reset();
  return node_.add_to_totals(process, summary);
}

void Runtime::add_limit(std::int64_t bytes) {
  base::MutexLock lock(mutex_);
  limits_.insert(bytes);
  apply_limit();
}

void Runtime::remove_limit(std::int64_t bytes) {
  base::MutexLock lock(mutex_);
  if (const auto found = limits_.find(bytes); found != limits_.end()) limits_.erase(found);
  if (!limits_.empty()) apply_limit();
}

void Runtime::apply_limit() { journal_->set_limit(*limits_.rbegin()); }

}  // namespace spillway::file
