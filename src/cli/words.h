#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spillway::cli {

// Whether a list of words with single blanks between them holds this word.
[[nodiscard]] bool lists_word(std::string_view list, std::string_view word);

// "a::b" by ':' -> "a", "", "b"; an empty text has no parts.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

// The directories of PATH, or the usual ones where it is not set; an empty part means the working directory.
[[nodiscard]] std::vector<std::string> path_directories();

// A word as a shell would have to be given it.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace spillway::cli
