#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "drain/recovery.h"

namespace CLI {
class App;
}

namespace spillway::cli {

// --shm-dir, for the commands that look for what jobs left behind.
class LeftJobsArguments {
 public:
  void add_to(CLI::App& app);
  // The directory asked for, else that of the environment or spillway.toml, else the default.  Fails: bad_argument, no_such_file.
  [[nodiscard]] Result<std::string> shm_dir() const;

 private:
  std::string given_;
};

// "job vm-17-1795, not running: 12.0 MiB pending in 2 files", and a line for each file.
[[nodiscard]] std::string describe_job(const drain::LeftJob& job);

}  // namespace spillway::cli
