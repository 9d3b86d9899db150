#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace spillway::base {

// What a job, or its part on one node, did through Spillway. The last process of a node to leave writes it as
// one line of JSON; `spillway run` adds the lines up and prints summary_text. Counts are sums over the
// processes, times too.
struct RunSummary {
  std::string node;                // host name; empty once nodes are added up
  std::int64_t processes = 0;      // processes that opened a managed file
  std::int64_t bytes_written = 0;  // accepted from the program by write calls
  std::int64_t bytes_read = 0;     // returned to the program by read calls
  std::int64_t bytes_staged = 0;   // of bytes_written: those that returned before they were in the file system
  std::int64_t waited_ns = 0;      // spent by the program inside MPI-IO calls
  std::int64_t hidden_ns = 0;      // drain time during which the program was not inside such a call
  std::int64_t drain_ns = 0;       // spent by the drain in the file system
  std::int64_t errors = 0;         // failed drains and writes
  std::int64_t pending_bytes = 0;  // still in a journal when the last process left
  std::string first_error;         // empty: none
};

// One line without its newline: {"node":"n1","processes":4,...}. Texts are cut at 4 KiB.
[[nodiscard]] std::string summary_line(const RunSummary& summary);

// Reads such a line; keys it does not know are skipped, absent ones stay 0. Bounds: a line of 64 KiB.
// Fails: corrupt, naming what was expected where.
Result<RunSummary> parse_summary_line(std::string_view line);

// Adds a node to a total; the first error of either stays.
void add_summary(RunSummary& total, const RunSummary& node);

// One sentence without a prefix or newline; times are means over the processes:
// "wrote 1.00 GiB; the program waited 0.21 s, 7.90 s of I/O were hidden (97 %); 0 errors".
[[nodiscard]] std::string summary_text(const RunSummary& total);

}  // namespace spillway::base
