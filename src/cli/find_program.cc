#include "cli/find_program.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "cli/words.h"

namespace spillway::cli {
namespace {

// A program that runs another: which of its options take a value in the next word, and how many words without
// a dash come before the command.
struct Wrapper {
  std::string_view name;
  std::string_view options_with_value;
  std::size_t operands = 0;
  std::string_view marker;  // the command begins behind this word, or is not understood without it
};
constexpr Wrapper kWrappers[] = {
    {"env", "-u --unset -C --chdir", 0, ""},
    {"nice", "-n --adjustment", 0, ""},
    {"nohup", "", 0, ""},
    {"setsid", "", 0, ""},
    {"time", "-f --format -o --output", 0, ""},
    {"timeout", "-k --kill-after -s --signal", 1, ""},
    {"stdbuf", "-i --input -o --output -e --error", 0, ""},
    {"taskset", "", 1, ""},
    {"ionice", "-c --class -n --classdata", 0, ""},
    {"chrt", "-T -P -D", 1, ""},
    {"numactl",
     "-i --interleave -p --preferred -m --membind -N --cpunodebind -C --physcpubind -w --weighted-interleave", 0, ""},
    {"strace", "-a -b -e -E -I -o -O -p -P -s -S -u -U -X", 0, ""},
    {"ltrace", "-a -A -D -e -E -F -l -n -o -p -s -u -w -x", 0, ""},
    {"valgrind", "", 0, ""},
    {"gdbserver", "", 1, ""},
    {"gdb", "", 0, "--args"},
    {"xterm", "", 0, "-e"},
};

constexpr std::string_view kInterpreters[] = {"sh",      "bash",   "dash", "zsh",  "ksh",    "csh",   "tcsh", "fish",
                                              "busybox", "perl",   "ruby", "lua",  "luajit", "julia", "R",    "Rscript",
                                              "octave",  "matlab", "java", "node", "tclsh",  "guile"};

const Wrapper* find_wrapper(std::string_view base_name) {
  const auto found = std::ranges::find(kWrappers, base_name, &Wrapper::name);
  return found == std::end(kWrappers) ? nullptr : found;
}

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != std::string_view::npos && equals > 0;
}

Status check_executable(const std::string& path) {
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (!exists) return {Code::no_such_file, fmt::format("there is no program {}", path)};
  const bool directory = S_ISDIR(info.st_mode);
  if (directory) return {Code::access_denied, fmt::format("{} is a directory, not a program", path)};
  const bool executable = ::access(path.c_str(), X_OK) == 0;
  if (!executable) return {Code::access_denied, fmt::format("{} is not executable", path)};
  return {};
}

}  // namespace

std::string_view base_name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

Result<std::string> find_program(const std::string& word, const SearchPlace& place) {
  const std::string prefix = place.directory.empty() ? "" : place.directory + "/";
  if (word.find('/') != std::string::npos) {
    const std::string path = word.starts_with('/') ? word : prefix + word;
    if (Status status = check_executable(path); !status.ok()) return status;
    return path;
  }
  std::vector<std::string> directories = split(place.path, ':');
  for (std::string& directory : path_directories()) directories.push_back(std::move(directory));
  for (const std::string& directory : directories) {
    const std::string candidate = fmt::format("{}/{}", directory, word);
    if (!word.empty() && check_executable(candidate).ok()) return candidate;
  }
  const std::string here = prefix + word;
  if (place.here_too && !word.empty() && check_executable(here).ok()) return prefix.empty() ? "./" + here : here;
  return Status(Code::no_such_file, fmt::format("there is no program '{}' in PATH", word));
}

std::size_t wrapper_words(std::span<const std::string> words) {
  const Wrapper* wrapper = words.empty() ? nullptr : find_wrapper(base_name_of(words[0]));
  if (wrapper == nullptr) return 0;
  std::size_t at = 1;
  if (!wrapper->marker.empty()) {
    while (at < words.size() && words[at] != wrapper->marker) ++at;
    return at + 1 < words.size() ? at + 1 : 0;
  }
  for (; at < words.size() && words[at].starts_with('-'); ++at) {
    if (words[at] == "--") {
      ++at;
      break;
    }
    const bool splits_text = words[at].starts_with("-S") || words[at].starts_with("--split-string");
    if (wrapper->name == "env" && splits_text) return 0;
    if (lists_word(wrapper->options_with_value, words[at])) ++at;
  }
  while (wrapper->name == "env" && at < words.size() && is_assignment(words[at])) ++at;
  at += wrapper->operands;
  return at < words.size() ? at : 0;
}

bool wrapper_clears_environment(std::span<const std::string> words) {
  if (words.empty() || base_name_of(words[0]) != "env") return false;
  const auto options = words.subspan(1, std::max<std::size_t>(wrapper_words(words), 1) - 1);
  return std::ranges::any_of(
      options, [](const std::string& word) { return word == "-i" || word == "-" || word == "--ignore-environment"; });
}

bool is_interpreter_name(std::string_view base_name) {
  if (base_name.starts_with("python") || base_name.starts_with("pypy")) return true;
  return std::ranges::find(kInterpreters, base_name) != std::end(kInterpreters);
}

}  // namespace spillway::cli
