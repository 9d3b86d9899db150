#pragma once

#include <span>
#include <string>
#include <string_view>

namespace spillway::base {

// The candidate nearest to a misspelt word by insertions, deletions, replacements and swapped neighbours, or
// empty when none is near enough to be what was meant. Case and the difference between '-' and '_' do not
// count.
[[nodiscard]] std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

// "; did you mean 'memory'?" or empty: the end of a message about an unknown word.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace spillway::base
