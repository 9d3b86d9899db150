#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace spillway::base {

// One key of a configuration file, with its value as the text that set_option takes.
struct FileEntry {
  std::string key;
  std::string value;
  unsigned line = 0;
};

// The keys of a TOML file, in the order of their lines; it knows no options.
// Bounds: a file of 1 MiB.  Blocks: on the file.
// Fails: by errno when the file cannot be read; bad_argument, naming file and line, when it is not TOML or
// holds a value that is no text, number, boolean or array of texts.
Result<std::vector<FileEntry>> read_configuration_file(const std::string& path);

}  // namespace spillway::base
