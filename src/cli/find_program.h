#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace spillway::cli {

struct SearchPlace {
  std::string directory;  // where relative paths begin; empty: the working directory
  std::string path;       // directories to search before those of PATH, with ':' between them
  bool here_too = false;  // a name that PATH does not know may also lie in that directory (Open MPI, srun)
};

// The file that a launcher or shell would run for a word: the path itself where it has a '/', else by PATH.
// Fails: no_such_file, or access_denied for a directory or a file that is not executable; the message names
// the word.
Result<std::string> find_program(const std::string& word, const SearchPlace& place);

// How many words of a command belong to a program that only runs another one: `env A=1`, `nice -n 5`,
// `taskset -c 0-3`, `gdb --args`. 0: it is no such program, or its options are not understood.
[[nodiscard]] std::size_t wrapper_words(std::span<const std::string> words);

// Such a wrapper empties the environment of what it starts (`env -i`).
[[nodiscard]] bool wrapper_clears_environment(std::span<const std::string> words);

// A program that runs what it reads, so that its own libraries say nothing of MPI: shells, python, perl, java
// ...
[[nodiscard]] bool is_interpreter_name(std::string_view base_name);

[[nodiscard]] std::string_view base_name_of(std::string_view path);

}  // namespace spillway::cli
