#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/activity.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/trace.h"
#include "drain/drain.h"
#include "journal/journal.h"
#include "journal/node.h"
#include "journal/pending.h"
#include "storage/backend.h"

namespace spillway::file {

// What one process needs to have managed files open: its journal, its background thread, its place in the node. The only place
// that names concrete drivers. Started at the first managed open; finished once, when nothing more can come.
//
// Threads: start() and finish() by one; the rest by any.
class Runtime {
 public:
  struct Options {
    base::Settings settings;
    int rank = 0;                               // in the job
    int node_processes = 1;                     // processes of the job on this node: they share its memory
    bool spans_nodes = false;                   // the job: other nodes have more of its processes
    std::shared_ptr<storage::Backend> backend;  // null: the operating system's files
  };
  // `node` outlives the runtime.  Fails: when shared memory cannot be had; the caller then does without Spillway.
  static Result<std::unique_ptr<Runtime>> start(journal::Node& node, Options options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Drains everything, ends the background thread and leaves the journal; what could not be written stays in it, and a line says so.
  // Returns the node's totals if this process was the last one of the node.
  std::optional<base::RunSummary> finish();

  [[nodiscard]] const base::Settings& settings() const { return options_.settings; }
  // Bytes must not stay pending where other nodes of the job could look for them, or write over them: they have no way to ask
  // (docs/adr/0004).
  [[nodiscard]] bool other_nodes_look() const {
    return options_.spans_nodes && options_.settings.between_nodes == base::BetweenNodes::written;
  }
  [[nodiscard]] const base::Clock& clock() const { return base::system_clock(); }
  [[nodiscard]] journal::Node& node() { return node_; }
  [[nodiscard]] journal::Journal& journal() { return *journal_; }
  [[nodiscard]] journal::Pending& pending() { return *pending_; }
  [[nodiscard]] drain::Drain& drain() { return *drain_; }
  [[nodiscard]] storage::Backend& backend() { return *options_.backend; }
  [[nodiscard]] base::Activity& activity() { return activity_; }
  [[nodiscard]] base::Trace* trace() { return trace_.get(); }

  // The buffer limit of a process when neither a setting nor a hint gives one.
  [[nodiscard]] std::int64_t default_limit() const { return default_limit_; }
  // An open file may use up to `bytes` of buffer. The journal's limit is the largest of all open files', and stays when the last
  // one goes, for its bytes are still there.
  void add_limit(std::int64_t bytes);
  void remove_limit(std::int64_t bytes);

 private:
  Runtime(journal::Node& node, Options options);
  void apply_limit() SPILLWAY_REQUIRES(mutex_);

  journal::Node& node_;
  Options options_;
  std::int64_t default_limit_ = 0;
  base::Activity activity_;
  std::unique_ptr<base::Trace> trace_;
  std::unique_ptr<journal::Journal> journal_;
  std::unique_ptr<journal::Pending> pending_;
  std::unique_ptr<drain::Drain> drain_;
  base::Mutex mutex_;
  std::multiset<std::int64_t> limits_ SPILLWAY_GUARDED_BY(mutex_);
  bool finished_ = false;
};

// The program is inside an I/O call while one exists: counted for the summary, and known to the drains of the node.
class InsideCall {
 public:
  explicit InsideCall(Runtime& runtime) : inside_(runtime.activity()), calls_(runtime.node().header().calls_inside) {
    calls_.fetch_add(1, std::memory_order_relaxed);
  }
  ~InsideCall() { calls_.fetch_sub(1, std::memory_order_relaxed); }
  InsideCall(const InsideCall&) = delete;
  InsideCall& operator=(const InsideCall&) = delete;

 private:
  base::Activity::Call inside_;
  std::atomic<std::uint32_t>& calls_;
};

// An entry in the trace for the time it exists.
class TraceScope {
 public:
  TraceScope(Runtime& runtime, std::string_view what, std::string_view file, std::int64_t bytes = 0)
      : runtime_(runtime), what_(what), file_(file), bytes_(bytes), begin_ns_(runtime.clock().now_ns()) {}
  ~TraceScope() {
    if (runtime_.trace() != nullptr)
      runtime_.trace()->add({begin_ns_, runtime_.clock().now_ns(), what_, bytes_, file_});
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  Runtime& runtime_;
  std::string_view what_;
  std::string_view file_;
  std::int64_t bytes_;
  std::int64_t begin_ns_;
};

}  // namespace spillway::file
