#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/status.h"

namespace spillway::base {

// Patterns that select files by name: those of fnmatch(3), in which * and ? also match '/', and {a,b} stands
// for either. A comma or a newline separates patterns, except that a comma inside braces or brackets or after
// a backslash belongs to its pattern; blanks around a pattern are dropped. Bounds: 256 patterns of 4096
// characters and 256 alternatives. Fails: bad_argument, with what is wrong with which pattern.
Result<std::vector<std::string>> split_patterns(std::string_view text);

// "a{b,c{d,e}}" -> "ab", "acd", "ace". The pattern is one that split_patterns accepted.
[[nodiscard]] std::vector<std::string> expand_braces(std::string_view pattern);

// Whether Spillway manages this file: no patterns are set, or one matches the path as given, the absolute
// path (made from the working directory, "." and ".." resolved as text, symbolic links not followed) or the
// last component.
[[nodiscard]] bool managed(const Settings& settings, std::string_view path);

}  // namespace spillway::base
