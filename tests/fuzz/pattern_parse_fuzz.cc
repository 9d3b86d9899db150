// Proves that Pattern::parse() neither crashes nor reads outside, and that what it accepts is safe to use and
// comes back unchanged from its own byte form.

#include <cstdlib>
#include <vector>

#include "extent/pattern.h"

using spillway::Result;
using spillway::extent::Extent;
using spillway::extent::Pattern;
using spillway::extent::PatternCursor;
using spillway::extent::StridedRun;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void walk(const Pattern& pattern) {
  const Extent bounds = pattern.bounds();
  const std::int64_t middle = pattern.bytes() / 2;
  PatternCursor cursor(pattern, 0, middle, pattern.bytes() - middle);
  for (int i = 0; i < 100 && cursor.remaining() > 0; ++i) {
    const StridedRun run = cursor.next();
    require(bounds.contains({run.offset, run.length}));
    require(bounds.contains({run.offset + (run.count - 1) * run.stride, run.length}));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<Pattern> parsed = Pattern::parse({reinterpret_cast<const std::byte*>(data), size});
  if (!parsed.ok()) return 0;
  const Pattern& pattern = parsed.value();
  std::vector<std::byte> bytes;
  pattern.serialize(bytes);
  const Result<Pattern> again = Pattern::parse(bytes);
  require(again.ok() && again.value().bytes() == pattern.bytes() && again.value().bounds() == pattern.bounds());
  (void)pattern.to_string();
  (void)pattern.memory_bytes();
  if (!pattern.empty()) walk(pattern);
  if (pattern.sorted_disjoint()) require(pattern.bytes_below(pattern.bounds().end()) == pattern.bytes());
  return 0;
}
