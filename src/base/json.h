#pragma once

#include <string>
#include <string_view>

namespace spillway::base {

// The text as a JSON string, quotes included: quotes, backslashes and control characters escaped, other bytes as they are.
[[nodiscard]] std::string json_quoted(std::string_view text);

}  // namespace spillway::base
