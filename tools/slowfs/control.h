// The commands that change the server while it is mounted, and the text of its counters. README.md lists
// both.
#pragma once

#include <stddef.h>

struct server;

// Runs commands, one a line, up to the first that is wrong. Returns 0 or -EINVAL (-ENOSPC: no place for a
// fault).
int control_run(struct server* server, const char* text, size_t length);

// Writes the counters as "name value" lines, at most `size` bytes with the terminator. Returns the length.
size_t control_statistics(const struct server* server, char* text, size_t size);

enum { STATISTICS_BYTES_MAX = 4096 };

// One line of help for each command.
extern const char control_help[];
