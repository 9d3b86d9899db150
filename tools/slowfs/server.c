#include "server.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

const char* const operation_names[OPERATIONS] = {"write", "read", "open", "meta", "fsync", "close"};

// What the state file holds. The lock is robust: a slowfs process that is killed while it holds it leaves
// counters that may be off by one request, and no other mount hangs.
struct shared {
  int ready;
  pthread_mutex_t lock;
  struct server server;
};

static struct shared* shared;
static struct server* server;
static double node_bandwidth;
static nanoseconds node_free_at[2];  // under the server's lock

#define ADD(counter, change) __atomic_add_fetch(&(counter), (change), __ATOMIC_RELAXED)

static nanoseconds later(nanoseconds a, nanoseconds b) { return a > b ? a : b; }

static void raise_to(long* maximum, long value) {
  long seen = __atomic_load_n(maximum, __ATOMIC_RELAXED);
  while (value > seen && !__atomic_compare_exchange_n(maximum, &seen, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

nanoseconds now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void sleep_until(nanoseconds at) {
  const struct timespec t = {at / 1000000000, at % 1000000000};
  prctl(PR_SET_TIMERSLACK, 1);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
  }
}

void server_lock(void) {
  if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD) pthread_mutex_consistent(&shared->lock);
}

void server_unlock(void) { pthread_mutex_unlock(&shared->lock); }

void server_limit_node(double bandwidth) { node_bandwidth = bandwidth; }

void server_defaults(void) {
  *server = (struct server){.writer_window = 100 * 1000000, .forgiven = 2 * 1000000, .drop_after = -1};
  server->counters.since = now();
}

struct server* server_attach(const char* state_path) {
  const int flags = MAP_SHARED | (state_path ? 0 : MAP_ANONYMOUS);
  const int fd = state_path ? open(state_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (state_path && (fd < 0 || flock(fd, LOCK_EX) || ftruncate(fd, sizeof *shared))) err(1, "%s", state_path);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (shared == MAP_FAILED) err(1, "mapping the state");
  server = &shared->server;
  if (!shared->ready) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->lock, &attributes);
    server_defaults();
    shared->ready = 1;
  }
  if (state_path) {
    flock(fd, LOCK_UN);
    close(fd);
  }
  return server;
}

// ---- faults
// ---------------------------------------------------------------------------------------------------

// The first fault that hits this request, used up by one; under the lock.
static struct fault take_fault(enum operation operation, const char* path) {
  for (struct fault* f = server->faults; f < server->faults + FAULTS_MAX; f++) {
    if (f->kind == FAULT_NONE || f->operation != operation) continue;
    if (f->match[0] && !(path && strstr(path, f->match))) continue;
    if (f->skip > 0) {
      f->skip--;
      continue;
    }
    const struct fault taken = *f;
    server->counters.faults++;
    if (f->count > 0 && --f->count == 0) f->kind = FAULT_NONE;
    return taken;
  }
  return (struct fault){.kind = FAULT_NONE};
}

int server_begin(enum operation operation, const char* path, enum fault_kind* kind, int* deferred) {
  const nanoseconds arrival = now();
  nanoseconds wake = 0;
  ADD(server->counters.requests[operation], 1);
  server_lock();
  // The latency of a transfer comes after it, in pace().
  if (operation > OP_READ && server->latency[operation]) wake = arrival + server->latency[operation];
  if (server->stall_until > arrival && (server->stall_operation < 0 || server->stall_operation == (int)operation))
    wake = later(wake, server->stall_until);
  const struct fault fault = take_fault(operation, path);
  server_unlock();
  if (wake) sleep_until(wake);
  if (kind) *kind = fault.kind;
  if (deferred) *deferred = fault.kind == FAULT_DEFER ? fault.error : 0;
  return fault.kind == FAULT_ERROR ? -fault.error : 0;
}

size_t server_kept(const char* path, int64_t offset, size_t bytes) {
  server_lock();
  const int64_t limit = server->drop_after;
  const int hit = limit >= 0 && strstr(path, server->drop_match) != NULL;
  server_unlock();
  if (!hit || offset + (int64_t)bytes <= limit) return bytes;
  return offset >= limit ? 0 : (size_t)(limit - offset);
}

// ---- speed
// ----------------------------------------------------------------------------------------------------

int server_active_writers(nanoseconds at) {
  int active = 0;
  for (int i = 0; i < WRITERS_MAX; i++)
    active += server->writers[i].used && at < server->writers[i].last_write + server->writer_window;
  return active;
}

// The contention curve at `writers`, linear between its points.
static double multiple_at(double writers) {
  const int points = server->curve_points;
  const double *x = server->curve_writers, *y = server->curve_multiple;
  if (points == 0) return 1;
  if (writers <= x[0]) return y[0];
  for (int i = 1; i < points; i++)
    if (writers <= x[i]) return y[i - 1] + (y[i] - y[i - 1]) * (writers - x[i - 1]) / (x[i] - x[i - 1]);
  return y[points - 1];
}

// First come, first served: when the last byte is through a link that is free at *free_at.
static nanoseconds occupy(nanoseconds* free_at, double rate, nanoseconds arrival, size_t bytes) {
  if (rate <= 0) return arrival;
  return *free_at = later(*free_at, arrival) + (nanoseconds)((double)bytes / rate * 1e9);
}

// Being woken late, and a little client time between two requests, is forgiven, so that one writer reaches
// the limit also on a busy machine; latency is not.
static void pace(enum operation direction, struct stream* stream, size_t bytes, nanoseconds start) {
  server_lock();
  const nanoseconds arrival = later(stream->ideal, start - stream->late - server->forgiven);
  const int writing = direction == OP_WRITE && stream->writer >= 0;
  double rate = server->bandwidth[direction];
  if (writing) {
    server->writers[stream->writer].last_write = start;
    const int writers = server_active_writers(start);
    raise_to(&server->counters.writers_max, writers);
    rate *= multiple_at(writers);
  }
  const nanoseconds served = occupy(&server->free_at[direction], rate, arrival, bytes);
  const nanoseconds sent = occupy(&node_free_at[direction], node_bandwidth, arrival, bytes);
  const nanoseconds end = later(served, sent) + server->latency[direction];
  stream->ideal = end;
  if (writing) server->writers[stream->writer].last_write = later(end, start);
  server_unlock();

  const nanoseconds before = now();
  if (end > before) {
    sleep_until(end);
    ADD(server->counters.throttled[direction], now() - before);
  }
  stream->late = later(0, now() - later(end, start));
}

void server_finish(enum operation direction, struct stream* stream, size_t bytes, nanoseconds start) {
  struct counters* c = &server->counters;
  int bucket = 0;
  while (bucket < HISTOGRAM_BUCKETS - 1 && bytes >= (size_t)1024 << bucket) bucket++;
  ADD(c->histogram[direction][bucket], 1);
  ADD(c->bytes[direction], (long)bytes);
  raise_to(&c->largest[direction], (long)bytes);
  pace(direction, stream, bytes, start);
  if (direction != OP_WRITE) return;
  server_lock();
  if (!c->first_write) c->first_write = start;
  c->last_write = now();
  server_unlock();
}

void server_in_flight(enum operation direction, int change) {
  const long current = ADD(server->counters.in_flight[direction], change);
  raise_to(&server->counters.in_flight_max[direction], current);
}

void stream_open(struct stream* stream, int for_writing) {
  *stream = (struct stream){.writer = -1};
  if (!for_writing) return;
  server_lock();
  for (int i = 0; i < WRITERS_MAX && stream->writer < 0; i++)
    if (!server->writers[i].used) {
      server->writers[i].used = 1;
      server->writers[i].last_write = 0;
      stream->writer = i;
    }
  server_unlock();
}

void stream_close(struct stream* stream) {
  if (stream->writer < 0) return;
  server_lock();
  server->writers[stream->writer].used = 0;
  server_unlock();
}
