// Proves that any configuration file is read or refused with a message, and that its values are applied or refused.

#include <unistd.h>

#include <cstdlib>

#include "base/config.h"
#include "base/config_file.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int descriptor = [] {
    char name[] = "/tmp/spillway-config-fuzz-XXXXXX";
    const int made = mkstemp(name);
    require(made >= 0 && unlink(name) == 0);
    return made;
  }();
  require(ftruncate(descriptor, 0) == 0);
  require(pwrite(descriptor, data, size, 0) == static_cast<ssize_t>(size));
  const auto entries = spillway::base::read_configuration_file("/proc/self/fd/" + std::to_string(descriptor));
  if (!entries.ok()) {
    require(!entries.status().what().empty());
    return 0;
  }
  spillway::base::Settings settings;
  for (const auto& entry : entries.value()) {
    const spillway::Status status = spillway::base::set_option(settings, entry.key, entry.value, "the file");
    require(status.ok() || !status.what().empty());
  }
  return 0;
}
