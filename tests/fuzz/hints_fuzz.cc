// Proves that hints of any keys and values are taken or ignored without harm, and that the values then in force are accepted again
// and mean the same.

#include <cstdlib>
#include <string_view>

#include "file/hints.h"

using spillway::file::Hints;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

// Lines of KEY=VALUE.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Hints hints({}, 7, false);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t equals = std::min(line.find('='), line.size());
    hints.set(line.substr(0, equals), line.substr(std::min(equals + 1, line.size())));
  }
  const auto shown = hints.in_force();
  Hints again({}, 7, false);
  for (const auto& [key, value] : shown) again.set(key, value);
  require(again.in_force() == shown);
  require(hints.limit(1000) >= 0);
  for (const auto& policy : {hints.write_policy(), hints.read_policy()}) {
    require(policy.aggregators_max >= 0 && policy.aggregators_per_node_max >= 0 && policy.alignment >= 0);
  }
  return 0;
}
