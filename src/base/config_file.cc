#include "base/config_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <optional>

// The only file that knows toml++, header-only so that the preload library drags nothing into the host
// program.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
// Its assertions do not hold for some files that are merely wrong ("[=4"), which it goes on to refuse as it should: neither a reason
// to end the host nor, as in its release builds, a fact for the compiler to build on.
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

#include "base/fd.h"
#include "base/units.h"

namespace spillway::base {
namespace {

constexpr std::size_t kFileBytesMax = kMiB;

Result<std::string> read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Status::from_errno(errno, "configuration file").on_path(path);
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status::from_errno(errno, "configuration file").on_path(path);
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > kFileBytesMax) {
      return Status(Code::bad_argument, fmt::format("{}: a configuration file has at most {}", path,
                                                    format_bytes(static_cast<std::int64_t>(kFileBytesMax))));
    }
  }
}

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
  return std::nullopt;
}

// An array becomes a list with one element a line, which is how set_option takes lists.
std::optional<std::string> value_text(const toml::node& node) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return scalar_text(node);
  std::string text;
  for (const toml::node& element : *array) {
    if (!element.is_string()) return std::nullopt;
    text += element.as_string()->get();
    text += '\n';
  }
  return text;
}

Result<std::vector<FileEntry>> parse(const std::string& text, const std::string& path) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Status(Code::bad_argument,
                  fmt::format("{}:{}: not TOML: {}", path, error.source().begin.line, error.description()));
  }
  std::vector<FileEntry> entries;
  for (const auto& [key, node] : parsed.table()) {
    FileEntry entry{std::string(key.str()), "", node.source().begin.line};
    std::optional<std::string> value = value_text(node);
    if (!value) {
      return Status(
          Code::bad_argument,
          fmt::format("{}:{}: {}: this kind of value is not accepted; accepted: a text, a number, true, false, "
                      "or an array of texts",
                      path, entry.line, entry.key));
    }
    entry.value = std::move(*value);
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &FileEntry::line);
  return entries;
}

}  // namespace

Result<std::vector<FileEntry>> read_configuration_file(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text.ok()) return text.status();
  try {
    return parse(text.value(), path);
  } catch (const std::exception& error) {
    return Status(Code::internal, fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace spillway::base
