#include "base/json.h"

#include <fmt/format.h>

namespace spillway::base {

std::string json_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c >= 0 && c < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace spillway::base
