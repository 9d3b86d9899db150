// The imagined file server behind a slowfs mount: how fast it is, how it suffers from many writers, which
// faults it is told to have, and what it has counted. Every slowfs process is one client node; those that
// name the same state file share one server, so its clocks and counters lie in shared memory under one lock.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int64_t nanoseconds;

enum operation { OP_WRITE, OP_READ, OP_OPEN, OP_META, OP_FSYNC, OP_CLOSE, OPERATIONS };
extern const char* const operation_names[OPERATIONS];

// What a fault does to the request it hits. FAULT_DEFER loses the data and reports the error at the next
// fsync or close, as NFS and quotas do.
enum fault_kind { FAULT_NONE, FAULT_ERROR, FAULT_SHORT, FAULT_DEFER };

enum {
  WRITERS_MAX = 1024,  // handles open for writing that are told apart
  FAULTS_MAX = 16,
  CURVE_POINTS_MAX = 16,
  HISTOGRAM_BUCKETS = 12,  // requests below 1 KiB, from 1 KiB, from 2 KiB, ... from 1 MiB
  MATCH_BYTES = 80,        // a fault's path substring, with its terminator
};

struct fault {
  enum fault_kind kind;
  enum operation operation;
  int error;   // errno value
  long count;  // how many requests it still hits; negative: all
  long skip;   // how many matching requests it still lets through
  char match[MATCH_BYTES];
};

struct counters {
  long requests[OPERATIONS];
  long bytes[2], largest[2], in_flight[2], in_flight_max[2];  // OP_WRITE and OP_READ
  long histogram[2][HISTOGRAM_BUCKETS];
  long faults, writers_max;
  nanoseconds since, first_write, last_write, throttled[2];
};

struct server {
  double bandwidth[2];     // bytes/s for writes and reads, all nodes together; 0: no limit
  nanoseconds free_at[2];  // virtual clock: when the server's link is next free
  nanoseconds latency[OPERATIONS];
  nanoseconds writer_window;  // a handle counts as a writer until this long after its last write
  nanoseconds forgiven;       // client time between two requests of one handle that does not cost bandwidth
  int curve_points;           // the contention curve: so many writers, this multiple of bandwidth[OP_WRITE]
  double curve_writers[CURVE_POINTS_MAX], curve_multiple[CURVE_POINTS_MAX];
  nanoseconds stall_until;
  int stall_operation;  // -1: all
  int64_t drop_after;   // data from this offset on is lost; -1: off
  char drop_match[MATCH_BYTES];
  struct fault faults[FAULTS_MAX];
  struct counters counters;
  struct {
    int used;
    nanoseconds last_write;
  } writers[WRITERS_MAX];
};

// One open file's place in time.
struct stream {
  int writer;         // index into server.writers; -1: not open for writing, or too many are
  nanoseconds ideal;  // when its last request would have ended on a server of the configured speed
  nanoseconds late;   // how much later than that the client got its answer
};

// Maps the server's state, shared with every process that names the same file; NULL: a server of its own.
// Ends the process with a message when it cannot.
struct server* server_attach(const char* state_path);

// The lock over everything in struct server except the counters, which are changed atomically.
void server_lock(void);
void server_unlock(void);

nanoseconds now(void);

// Restores the state of a server that was just made: no limit, no fault. The caller holds the lock.
void server_defaults(void);

// Counts a request, sleeps its latency and any stall, and injects what it is told to. Returns 0 or -errno;
// *kind (may be NULL) tells FAULT_SHORT and FAULT_DEFER, whose errno is in *deferred.
int server_begin(enum operation operation, const char* path, enum fault_kind* kind, int* deferred);

// A request of `bytes` that came at `start` is done on the backing store: counts it and waits until a server
// of the configured speed would have answered. `direction` is OP_WRITE or OP_READ.
void server_finish(enum operation direction, struct stream* stream, size_t bytes, nanoseconds start);

// One more, or one less, request of `direction` under way.
void server_in_flight(enum operation direction, int change);

// How much of a write of `bytes` at `offset` of `path` reaches the backing store under the drop command.
size_t server_kept(const char* path, int64_t offset, size_t bytes);

void stream_open(struct stream* stream, int for_writing);
void stream_close(struct stream* stream);

// Limits this process alone, in bytes/s and each direction: the node's own link. 0: no limit.
void server_limit_node(double bandwidth);

int server_active_writers(nanoseconds at);
