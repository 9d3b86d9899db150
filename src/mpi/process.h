#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "base/config.h"
#include "base/mutex.h"
#include "file/runtime.h"
#include "journal/node.h"

namespace spillway::mpi {

// This process's part of the job: settings, the node's memory, the runtime. Comes into being at the first open of a managed file, never
// earlier. It ends when MPI_Finalize begins (an attribute of MPI_COMM_SELF is deleted then); when it returns, if files are open at the begin:
// libraries close theirs in such attributes of their own, which may come later; or with the process.
// Threads: any.
class Process {
 public:
  static Process& instance();

  // Whether the settings leave this file to Spillway at all: the same answer in every process of the job, also in one that cannot
  // start, for the others must hear of that.
  bool manages(const std::string& path);
  // Starts the runtime if need be. Null when that is not possible, or the end has come.
  file::Runtime* runtime();
  // Says, once, why this process cannot take part: the reason given, or why it could not start.
  void say_why_not(const std::string& reason = "");
  // The same, but never starts it.
  file::Runtime* runtime_if_started();
  [[nodiscard]] journal::Node* node() { return node_.get(); }

  // Drains and ends. Later opens are not managed.
  void finish();

 private:
  Process() = default;
  void load_settings() SPILLWAY_REQUIRES(mutex_);
  void start() SPILLWAY_REQUIRES(mutex_);
  void report(const base::RunSummary& summary) const;

  mutable base::Mutex mutex_;
  bool settings_loaded_ SPILLWAY_GUARDED_BY(mutex_) = false;
  bool usable_ SPILLWAY_GUARDED_BY(mutex_) = false;
  bool tried_ SPILLWAY_GUARDED_BY(mutex_) = false;
  bool finished_ SPILLWAY_GUARDED_BY(mutex_) = false;
  int pid_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::string why_not_ SPILLWAY_GUARDED_BY(mutex_);
  bool said_why_not_ SPILLWAY_GUARDED_BY(mutex_) = false;
  base::Settings settings_ SPILLWAY_GUARDED_BY(mutex_);
  std::unique_ptr<journal::Node> node_;
  std::unique_ptr<file::Runtime> runtime_;
};

// MPI_Finalize has begun: nothing collective can be done any more.
[[nodiscard]] bool mpi_is_ending();

}  // namespace spillway::mpi
