#pragma once

#include <optional>
#include <string_view>

#include "cli/launcher.h"

namespace spillway::cli {

[[nodiscard]] bool is_openmpi(LauncherFamily family);

// How many words follow an option of this name (without dashes) as its values; nothing: the family does not
// know it.
// `-genv` and `-env` of hydra are not listed: theirs may be one word or two.
[[nodiscard]] std::optional<int> option_values(LauncherFamily family, std::string_view name);

// Letters of short options with a value, which may stand in the same word: `-n4`.
inline constexpr std::string_view kSrunShortWithValue = "ABcCdDeFgGiJLmMnNopPqrStTUwWx";
inline constexpr std::string_view kOpenMpiShortWithValue = "ncNHx";

}  // namespace spillway::cli
