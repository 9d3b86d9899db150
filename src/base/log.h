#pragma once

#include <string_view>

namespace spillway::base {

// The one outlet for messages: a line "spillway: TEXT" (or "spillway[RANK]: TEXT") on stderr, in a single write(2).
// The function that first detects a failure logs it, once; callers pass the Status on. Never called under a lock.
// Threads: any.  Blocks: on stderr.
enum class LogLevel { error, warning, info, debug };

void log(LogLevel level, std::string_view text);
inline void log_error(std::string_view text) { log(LogLevel::error, text); }
inline void log_warning(std::string_view text) { log(LogLevel::warning, text); }
inline void log_info(std::string_view text) { log(LogLevel::info, text); }
inline void log_debug(std::string_view text) { log(LogLevel::debug, text); }

// Messages above the level are dropped; default warning.
void set_log_level(LogLevel level);
// Shown in front of every line once it is known; negative: not shown.
void set_log_rank(int rank);

}  // namespace spillway::base
