#include "control.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

enum { WORDS_MAX = 8, ERRNO_MAX = 133 };

const char control_help[] =
    "  wbw BYTES/S, rbw BYTES/S          bandwidth of the server for writes and reads; 0: no limit\n"
    "  lat OPERATION|all MICROSECONDS    per request\n"
    "  curve WRITERS:MULTIPLE,...|off    bandwidth by the number of writers, linear between the points\n"
    "  window MICROSECONDS               a handle counts as a writer until this long after its last write\n"
    "  burst MICROSECONDS                client time between two requests of one handle that is forgiven\n"
    "  fail OPERATION ERRNO [COUNT [SKIP [SUBSTRING]]]   requests on paths with SUBSTRING fail\n"
    "  short write|read [COUNT [SKIP [SUBSTRING]]]       half of the bytes are done\n"
    "  defer ERRNO [COUNT [SKIP [SUBSTRING]]]            the data is lost, fsync or close says so\n"
    "  drop OFFSET [SUBSTRING] | drop off                data from OFFSET on is silently lost\n"
    "  stall SECONDS [OPERATION]         all requests wait until then\n"
    "  clear                             no fault any more\n"
    "  reset                             counters to zero\n";

// ---- words
// ----------------------------------------------------------------------------------------------------

// 100, 1.5k, 200M, 1G (powers of ten); -1 when it is no number.
static double number(const char* word) {
  char* end = NULL;
  const double value = strtod(word, &end);
  if (end == word || value < 0) return -1;
  const char* const suffix = strchr("kMG", *end);
  if (*end == '\0') return value;
  if (!suffix || end[1]) return -1;
  return value * (*suffix == 'k' ? 1e3 : *suffix == 'M' ? 1e6 : 1e9);
}

static int operation_named(const char* word) {  // -1: none
  int i = OPERATIONS - 1;
  while (i >= 0 && strcmp(word, operation_names[i]) != 0) i--;
  return i;
}

static int errno_named(const char* word) {  // 0: none
  for (int i = ERRNO_MAX; i > 0; i--) {
    const char* const name = strerrorname_np(i);
    if (name && !strcmp(word, name)) return i;
  }
  return 0;
}

static void copy_match(char* match, const char* word) { snprintf(match, MATCH_BYTES, "%s", word); }

// ---- commands: `words` holds the arguments without the command's name; 0 or -errno
// ----------------------------

// rest: [COUNT [SKIP [SUBSTRING]]]
static int add_fault(struct server* s, struct fault fault, char** rest, int words) {
  fault.count = words > 0 ? atol(rest[0]) : 1;
  fault.skip = words > 1 ? atol(rest[1]) : 0;
  if (fault.count == 0 || fault.skip < 0) return -EINVAL;
  copy_match(fault.match, words > 2 ? rest[2] : "");
  for (int i = 0; i < FAULTS_MAX; i++)
    if (s->faults[i].kind == FAULT_NONE) {
      s->faults[i] = fault;
      return 0;
    }
  return -ENOSPC;
}

static int fail_command(struct server* s, char** words, int count) {
  const int operation = operation_named(words[0]), error = errno_named(words[1]);
  if (operation < 0 || !error) return -EINVAL;
  const struct fault fault = {.kind = FAULT_ERROR, .operation = (enum operation)operation, .error = error};
  return add_fault(s, fault, words + 2, count - 2);
}

static int short_command(struct server* s, char** words, int count) {
  const int operation = operation_named(words[0]);
  if (operation != OP_WRITE && operation != OP_READ) return -EINVAL;
  const struct fault fault = {.kind = FAULT_SHORT, .operation = (enum operation)operation};
  return add_fault(s, fault, words + 1, count - 1);
}

static int defer_command(struct server* s, char** words, int count) {
  const int error = errno_named(words[0]);
  if (!error) return -EINVAL;
  const struct fault fault = {.kind = FAULT_DEFER, .operation = OP_WRITE, .error = error};
  return add_fault(s, fault, words + 1, count - 1);
}

static int set_bandwidth(struct server* s, enum operation direction, const char* word) {
  const double value = number(word);
  if (value < 0) return -EINVAL;
  s->bandwidth[direction] = value;
  s->free_at[direction] = 0;
  return 0;
}

static int wbw_command(struct server* s, char** words, int count) {
  (void)count;
  return set_bandwidth(s, OP_WRITE, words[0]);
}

static int rbw_command(struct server* s, char** words, int count) {
  (void)count;
  return set_bandwidth(s, OP_READ, words[0]);
}

static int set_microseconds(nanoseconds* value, const char* word) {
  const double microseconds = number(word);
  if (microseconds < 0) return -EINVAL;
  *value = (nanoseconds)(microseconds * 1000);
  return 0;
}

static int window_command(struct server* s, char** words, int count) {
  (void)count;
  return set_microseconds(&s->writer_window, words[0]);
}

static int burst_command(struct server* s, char** words, int count) {
  (void)count;
  return set_microseconds(&s->forgiven, words[0]);
}

static int lat_command(struct server* s, char** words, int count) {
  const int operation = operation_named(words[0]);
  (void)count;
  if ((operation < 0 && strcmp(words[0], "all") != 0) || number(words[1]) < 0) return -EINVAL;
  for (int i = 0; i < OPERATIONS; i++)
    if (operation < 0 || i == operation) set_microseconds(&s->latency[i], words[1]);
  return 0;
}

static int curve_command(struct server* s, char** words, int count) {
  double writers[CURVE_POINTS_MAX], multiple[CURVE_POINTS_MAX];
  int points = 0;
  char* place = NULL;
  (void)count;
  if (strcmp(words[0], "off") != 0)
    for (char* p = strtok_r(words[0], ",", &place); p; p = strtok_r(NULL, ",", &place)) {
      if (points == CURVE_POINTS_MAX || sscanf(p, "%lf:%lf", &writers[points], &multiple[points]) != 2) return -EINVAL;
      if (multiple[points] <= 0 || (points && writers[points] <= writers[points - 1])) return -EINVAL;
      points++;
    }
  memcpy(s->curve_writers, writers, sizeof writers);
  memcpy(s->curve_multiple, multiple, sizeof multiple);
  s->curve_points = points;
  return 0;
}

static int stall_command(struct server* s, char** words, int count) {
  const double seconds = number(words[0]);
  const int operation = count > 1 ? operation_named(words[1]) : -1;
  if (seconds < 0 || (count > 1 && operation < 0)) return -EINVAL;
  s->stall_operation = operation;
  s->stall_until = now() + (nanoseconds)(seconds * 1e9);
  return 0;
}

static int drop_command(struct server* s, char** words, int count) {
  const int off = !strcmp(words[0], "off");
  if (!off && number(words[0]) < 0) return -EINVAL;
  copy_match(s->drop_match, count > 1 ? words[1] : "");
  s->drop_after = off ? -1 : (int64_t)number(words[0]);
  return 0;
}

static int clear_command(struct server* s, char** words, int count) {
  (void)words, (void)count;
  memset(s->faults, 0, sizeof s->faults);
  s->drop_after = -1;
  s->stall_until = 0;
  return 0;
}

// Requests under way stay counted as under way.
static int reset_command(struct server* s, char** words, int count) {
  struct counters fresh = {.since = now()};
  (void)words, (void)count;
  memcpy(fresh.in_flight, s->counters.in_flight, sizeof fresh.in_flight);
  s->counters = fresh;
  return 0;
}

static const struct {
  const char* name;
  int arguments_min, arguments_max;
  int (*run)(struct server* server, char** words, int count);
} commands[] = {
    {"wbw", 1, 1, wbw_command},     {"rbw", 1, 1, rbw_command},       {"lat", 2, 2, lat_command},
    {"curve", 1, 1, curve_command}, {"window", 1, 1, window_command}, {"burst", 1, 1, burst_command},
    {"fail", 2, 5, fail_command},   {"short", 1, 4, short_command},   {"defer", 1, 4, defer_command},
    {"drop", 1, 2, drop_command},   {"stall", 1, 2, stall_command},   {"clear", 0, 0, clear_command},
    {"reset", 0, 0, reset_command},
};

// Under the server's lock.
static int run_line(struct server* s, char* line) {
  char *words[WORDS_MAX + 1], *place = NULL;
  int count = 0;
  for (char* w = strtok_r(line, " \t\r", &place); w && count <= WORDS_MAX; w = strtok_r(NULL, " \t\r", &place))
    words[count++] = w;
  if (count == 0) return 0;
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    if (strcmp(words[0], commands[i].name) != 0) continue;
    const int arguments = count - 1;
    if (arguments < commands[i].arguments_min || arguments > commands[i].arguments_max) return -EINVAL;
    return commands[i].run(s, words + 1, arguments);
  }
  return -EINVAL;
}

int control_run(struct server* server, const char* text, size_t length) {
  char *copy = strndup(text, length), *place = NULL;
  int result = 0;
  if (!copy) return -ENOMEM;
  server_lock();
  for (char* line = strtok_r(copy, "\n", &place); line && !result; line = strtok_r(NULL, "\n", &place))
    result = run_line(server, line);
  server_unlock();
  free(copy);
  return result;
}

// ---- counters
// -------------------------------------------------------------------------------------------------

struct text {
  char* at;
  size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void add(struct text* text, const char* format, ...) {
  if (text->length >= text->size) return;
  va_list arguments;
  va_start(arguments, format);
  const int n = vsnprintf(text->at + text->length, text->size - text->length, format, arguments);
  va_end(arguments);
  if (n > 0) text->length += (size_t)n;
}

size_t control_statistics(const struct server* server, char* text, size_t size) {
  struct text out = {text, size, 0};
  const nanoseconds at = now();
  server_lock();
  const struct counters c = server->counters;
  const int writers = server_active_writers(at);
  server_unlock();
  const double span = (double)(c.last_write - c.first_write) / 1e9;
  add(&out, "seconds %.3f\nwriters %d\nmax_writers %ld\nfaults_injected %ld\n", (double)(at - c.since) / 1e9, writers,
      c.writers_max, c.faults);
  add(&out, "write_span_seconds %.3f\nwrite_MB_per_s %.1f\n", span,
      span > 0 ? (double)c.bytes[OP_WRITE] / span / 1e6 : 0);
  for (int i = 0; i < OPERATIONS; i++) {
    const char* const name = operation_names[i];
    add(&out, "%s_requests %ld\n", name, c.requests[i]);
    if (i > OP_READ) continue;
    add(&out, "%s_bytes %ld\n%s_mean %ld\n%s_largest %ld\n", name, c.bytes[i], name,
        c.requests[i] ? c.bytes[i] / c.requests[i] : 0, name, c.largest[i]);
    add(&out, "%s_max_in_flight %ld\n%s_wait_seconds %.3f\n", name, c.in_flight_max[i], name,
        (double)c.throttled[i] / 1e9);
    for (int k = 0; k < HISTOGRAM_BUCKETS; k++)
      if (c.histogram[i][k]) add(&out, "%s_from_%dk %ld\n", name, k ? 1 << (k - 1) : 0, c.histogram[i][k]);
  }
  return out.length < size ? out.length : size - 1;
}
