// Jacobi relaxation of a square grid that writes snapshots through MPI-IO: the program of §4.1 of "Improving
// MPI-IO Output Performance with Active Buffering Plus Threads". It is plain C and MPI and knows nothing of
// Spillway.
//
// The grid is cut into blocks in both dimensions. Every iteration exchanges the edges of the blocks (the
// halo) and relaxes each block; after every K iterations all ranks write the whole grid, in row-major order,
// into one shared file with MPI_File_write_all, each through a subarray view of its own block. The same
// options on the same number of ranks give the same bytes.
//
//   mpicc -O2 -o jacobi jacobi.c -lm && mpiexec -n 4 ./jacobi --grid 2048 --iterations 100 --every 10
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char kUsage[] =
    "usage: mpiexec -n P jacobi [option]...\n"
    "  --grid N          N x N doubles in the whole grid (1024)\n"
    "  --iterations N    iterations in all (100)\n"
    "  --every K         write the grid after every K iterations; 0: never (10)\n"
    "  --sweeps S        relaxation sweeps of each block between two halo exchanges (1)\n"
    "  --output PATH     the file to write (jacobi.out)\n"
    "  --files one|each  one file with the snapshots one after the other, or PATH.0000, PATH.0001, ... "
    "(one)\n"
    "  --check           read everything back through MPI-IO and compare\n"
    "  --log PATH        every rank R writes when it computed and when it wrote to PATH.R, as JSON lines\n";

struct options {
  int grid, iterations, every, sweeps, one_file, check;
  const char *output, *log;
};

// The part of the grid this rank owns, stored with a border of one cell on each side.
struct block {
  MPI_Comm comm;              // Cartesian, the ranks as rows x columns
  int rank, ranks, dims[2];   // dims: blocks down and across
  int first[2], size[2];      // first global row and column, rows and columns, without the border
  int up, down, left, right;  // neighbours; MPI_PROC_NULL at the rim of the grid
  double *now, *next;         // (size[0] + 2) x (size[1] + 2), row-major; the border of the rim stays 0
  MPI_Datatype column;        // one column without the border, for the halo
  MPI_Datatype in_memory;     // the block inside `now`, without its border
  MPI_Datatype in_file;       // the block inside the whole grid
};

// Where the time went, in nanoseconds of CLOCK_MONOTONIC. `log` may be null.
struct timing {
  FILE* log;
  int64_t start, compute, io;
};

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

// Ends the whole program with a message. Any one rank may call it, for whatever went wrong on that rank
// alone.
__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "jacobi: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);  // some MPIs return from MPI_Abort while they tell the other ranks
}

// MPI_File functions return their errors unless told otherwise; nothing may go on after one.
static void check_io(int result, const char* call, const char* path) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (result == MPI_SUCCESS) return;
  MPI_Error_string(result, text, &length);
  fail("%s of %s: %s", call, path, text);
}

// All ranks parse the same arguments, so all reach the same verdict; rank 0 alone says it.
__attribute__((noreturn, format(printf, 2, 3))) static void refuse(int rank, const char* format, ...) {
  if (rank == 0) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "jacobi: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n%s", kUsage);
    va_end(arguments);
  }
  MPI_Finalize();
  exit(2);
}

static int parse_count(int rank, const char* name, const char* text, int least) {
  char* end = NULL;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (end == text || *end || errno || value < least || value > 1000000)
    refuse(rank, "%s %s: must be a whole number from %d to 1000000", name, text, least);
  return (int)value;
}

static struct options parse(int rank, int argc, char** argv) {
  struct options o = {1024, 100, 10, 1, 1, 0, "jacobi.out", NULL};
  for (int i = 1; i < argc; i++) {
    const char *name = argv[i], *value = argv[i + 1];
    if (!strcmp(name, "--check")) {
      o.check = 1;
      continue;
    }
    if (!strcmp(name, "--help")) {
      if (rank == 0) fputs(kUsage, stdout);
      MPI_Finalize();
      exit(0);
    }
    if (!value) refuse(rank, "%s: unknown, or its value is missing", name);
    i++;
    if (!strcmp(name, "--grid"))
      o.grid = parse_count(rank, name, value, 1);
    else if (!strcmp(name, "--iterations"))
      o.iterations = parse_count(rank, name, value, 0);
    else if (!strcmp(name, "--every"))
      o.every = parse_count(rank, name, value, 0);
    else if (!strcmp(name, "--sweeps"))
      o.sweeps = parse_count(rank, name, value, 1);
    else if (!strcmp(name, "--output"))
      o.output = value;
    else if (!strcmp(name, "--log"))
      o.log = value;
    else if (!strcmp(name, "--files") && !strcmp(value, "one"))
      o.one_file = 1;
    else if (!strcmp(name, "--files") && !strcmp(value, "each"))
      o.one_file = 0;
    else if (!strcmp(name, "--files"))
      refuse(rank, "--files %s: must be one or each", value);
    else
      refuse(rank, "%s: unknown option", name);
  }
  return o;
}

// ---- the grid
// -------------------------------------------------------------------------------------------------------

// A value in [0, 1) that depends on nothing but the cell, and differs from its neighbours'.
static double initial_value(uint64_t cell) {
  uint64_t x = cell + UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (double)((x ^ (x >> 31)) >> 11) / (double)(UINT64_C(1) << 53);
}

static size_t stored_columns(const struct block* b) { return (size_t)b->size[1] + 2; }

// Collective over MPI_COMM_WORLD: every rank gets its block.
static struct block make_block(int grid) {
  struct block b = {0};
  int world = 0, periods[2] = {0, 0}, place[2];
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  MPI_Dims_create(world, 2, b.dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, b.dims, periods, 0, &b.comm);
  MPI_Comm_rank(b.comm, &b.rank);
  b.ranks = world;
  MPI_Cart_coords(b.comm, b.rank, 2, place);
  MPI_Cart_shift(b.comm, 0, 1, &b.up, &b.down);
  MPI_Cart_shift(b.comm, 1, 1, &b.left, &b.right);
  for (int d = 0; d < 2; d++) {
    b.first[d] = (int)((int64_t)grid * place[d] / b.dims[d]);
    b.size[d] = (int)((int64_t)grid * (place[d] + 1) / b.dims[d]) - b.first[d];
  }
  if (grid < b.dims[0] || grid < b.dims[1])
    fail("a grid of %d x %d has nothing for some of %d x %d ranks", grid, grid, b.dims[0], b.dims[1]);

  const int stored[2] = {b.size[0] + 2, b.size[1] + 2}, inside[2] = {1, 1}, whole[2] = {grid, grid};
  MPI_Type_vector(b.size[0], 1, stored[1], MPI_DOUBLE, &b.column);
  MPI_Type_create_subarray(2, stored, b.size, inside, MPI_ORDER_C, MPI_DOUBLE, &b.in_memory);
  MPI_Type_create_subarray(2, whole, b.size, b.first, MPI_ORDER_C, MPI_DOUBLE, &b.in_file);
  MPI_Type_commit(&b.column);
  MPI_Type_commit(&b.in_memory);
  MPI_Type_commit(&b.in_file);

  const size_t cells = (size_t)stored[0] * (size_t)stored[1];
  b.now = calloc(cells, sizeof *b.now);
  b.next = calloc(cells, sizeof *b.next);
  if (!b.now || !b.next) fail("no memory for %zu cells", 2 * cells);
  for (int i = 1; i <= b.size[0]; i++)
    for (int j = 1; j <= b.size[1]; j++)
      b.now[(size_t)i * stored_columns(&b) + (size_t)j] =
          initial_value((uint64_t)(b.first[0] + i - 1) * (uint64_t)grid + (uint64_t)(b.first[1] + j - 1));
  return b;
}

static void free_block(struct block* b) {
  free(b->now);
  free(b->next);
  MPI_Type_free(&b->column);
  MPI_Type_free(&b->in_memory);
  MPI_Type_free(&b->in_file);
  MPI_Comm_free(&b->comm);
}

// Collective over the grid's ranks: everyone's border becomes the neighbours' edges.
static void exchange_halo(struct block* b) {
  const size_t row = stored_columns(b), last = (size_t)b->size[0];
  const int columns = b->size[1];
  double* u = b->now;
  MPI_Sendrecv(u + row + 1, columns, MPI_DOUBLE, b->up, 0, u + (last + 1) * row + 1, columns, MPI_DOUBLE, b->down, 0,
               b->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(u + last * row + 1, columns, MPI_DOUBLE, b->down, 1, u + 1, columns, MPI_DOUBLE, b->up, 1, b->comm,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(u + row + 1, 1, b->column, b->left, 2, u + row + (size_t)columns + 1, 1, b->column, b->right, 2, b->comm,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(u + row + (size_t)columns, 1, b->column, b->right, 3, u + row, 1, b->column, b->left, 3, b->comm,
               MPI_STATUS_IGNORE);
}

// Every cell becomes the mean of its four neighbours, `sweeps` times with the same border.
static void relax(struct block* b, int sweeps) {
  const size_t row = stored_columns(b), rows = (size_t)b->size[0], columns = (size_t)b->size[1];
  for (int s = 0; s < sweeps; s++) {
    for (size_t i = 1; i <= rows; i++) {
      const double* restrict above = b->now + (i - 1) * row, * restrict here = b->now + i * row, * restrict below = b->now + (i + 1) * row;
      double* restrict out = b->next + i * row;
      for (size_t j = 1; j <= columns; j++) out[j] = 0.25 * (above[j] + below[j] + here[j - 1] + here[j + 1]);
    }
    if (s + 1 < sweeps) {  // the next sweep reads `next`: it needs the same border
      memcpy(b->next, b->now, row * sizeof *b->now);
      memcpy(b->next + (rows + 1) * row, b->now + (rows + 1) * row, row * sizeof *b->now);
      for (size_t i = 1; i <= rows; i++) {
        b->next[i * row] = b->now[i * row];
        b->next[i * row + columns + 1] = b->now[i * row + columns + 1];
      }
    }
    double* swap = b->now;
    b->now = b->next;
    b->next = swap;
  }
}

// Collective: the root mean square of the last sweep's change over the whole grid, the same on every rank.
static double change(const struct block* b, int grid) {
  const size_t row = stored_columns(b);
  double mine = 0, all = 0;
  for (size_t i = 1; i <= (size_t)b->size[0]; i++)
    for (size_t j = 1; j <= (size_t)b->size[1]; j++) {
      const double d = b->now[i * row + j] - b->next[i * row + j];
      mine += d * d;
    }
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, b->comm);
  return sqrt(all) / grid;
}

// FNV-1a over the block without its border; tells blocks apart for --check.
static uint64_t checksum(const struct block* b) {
  const size_t row = stored_columns(b);
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 1; i <= (size_t)b->size[0]; i++)
    for (size_t j = 1; j <= (size_t)b->size[1]; j++) {
      uint64_t bits = 0;
      memcpy(&bits, &b->now[i * row + j], sizeof bits);
      hash = (hash ^ bits) * UINT64_C(0x100000001b3);
    }
  return hash;
}

// ---- the log
// --------------------------------------------------------------------------------------------------------

// Line by line, so that a killed run leaves every phase that ended.
static FILE* open_log(const struct options* o, const struct block* b) {
  if (!o->log) return NULL;
  const size_t size = strlen(o->log) + 16;
  char* path = malloc(size);
  if (!path) fail("no memory");
  snprintf(path, size, "%s.%d", o->log, b->rank);
  FILE* log = fopen(path, "w");
  if (!log) fail("--log %s: %s", path, strerror(errno));
  free(path);
  setvbuf(log, NULL, _IOLBF, 4096);
  fprintf(log, "{\"jacobi_log\":1,\"rank\":%d,\"ranks\":%d,\"clock\":\"monotonic_ns\"}\n", b->rank, b->ranks);
  return log;
}

// phase: compute, io (all MPI_File calls of a snapshot), or finalize. Returns the phase's length.
static int64_t record(FILE* log, const char* phase, int64_t t0, int snapshot) {
  const int64_t t1 = now_ns();
  if (log)
    fprintf(log, "{\"phase\":\"%s\",\"t0\":%lld,\"t1\":%lld,\"snapshot\":%d}\n", phase, (long long)t0, (long long)t1,
            snapshot);
  return t1 - t0;
}

// ---- the files
// ------------------------------------------------------------------------------------------------------

static void snapshot_path(const struct options* o, int snapshot, char* path, size_t size) {
  const int length =
      o->one_file ? snprintf(path, size, "%s", o->output) : snprintf(path, size, "%s.%04d", o->output, snapshot);
  if (length < 0 || (size_t)length >= size) fail("--output: the path is longer than %zu bytes", size);
}

// Collective. Opens the file of one snapshot, empty when `mode` writes.
static MPI_File open_file(const struct block* b, const char* path, int mode) {
  MPI_File file;
  check_io(MPI_File_open(b->comm, path, mode, MPI_INFO_NULL, &file), "MPI_File_open", path);
  if (mode & MPI_MODE_CREATE) check_io(MPI_File_set_size(file, 0), "MPI_File_set_size", path);
  return file;
}

// Collective. The view of this rank's block of one snapshot.
static void set_view(const struct options* o, const struct block* b, MPI_File file, int snapshot, const char* path) {
  const MPI_Offset grid_bytes = (MPI_Offset)o->grid * o->grid * (MPI_Offset)sizeof(double);
  const MPI_Offset start = o->one_file ? snapshot * grid_bytes : 0;
  check_io(MPI_File_set_view(file, start, MPI_DOUBLE, b->in_file, "native", MPI_INFO_NULL), "MPI_File_set_view", path);
}

static void expect_count(const struct block* b, MPI_Status* status, const char* call, const char* path) {
  int count = 0;
  MPI_Get_elements(status, MPI_DOUBLE, &count);
  if (count != b->size[0] * b->size[1]) fail("%s of %s: %d of %d doubles", call, path, count, b->size[0] * b->size[1]);
}

// Collective. `file` is open from the first snapshot to the last with --files one, and null otherwise.
static void write_snapshot(const struct options* o, const struct block* b, MPI_File file, int snapshot) {
  char path[4096];
  MPI_Status status;
  snapshot_path(o, snapshot, path, sizeof path);
  if (!o->one_file) file = open_file(b, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  set_view(o, b, file, snapshot, path);
  check_io(MPI_File_write_all(file, b->now, 1, b->in_memory, &status), "MPI_File_write_all", path);
  expect_count(b, &status, "MPI_File_write_all", path);
  if (!o->one_file) check_io(MPI_File_close(&file), "MPI_File_close", path);
}

// Collective. Reads every snapshot into `now`, which it destroys; returns how many blocks of all ranks
// differ.
static int count_wrong_blocks(const struct options* o, struct block* b, const uint64_t* checksums, int snapshots) {
  int mine = 0, all = 0;
  char path[4096];
  MPI_File file = MPI_FILE_NULL;
  for (int s = 0; s < snapshots; s++) {
    MPI_Status status;
    snapshot_path(o, s, path, sizeof path);
    if (file == MPI_FILE_NULL) file = open_file(b, path, MPI_MODE_RDONLY);
    set_view(o, b, file, s, path);
    check_io(MPI_File_read_all(file, b->now, 1, b->in_memory, &status), "MPI_File_read_all", path);
    expect_count(b, &status, "MPI_File_read_all", path);
    mine += checksum(b) != checksums[s];
    if (!o->one_file || s + 1 == snapshots) check_io(MPI_File_close(&file), "MPI_File_close", path);
  }
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, b->comm);
  return all;
}

// ---- the program
// ----------------------------------------------------------------------------------------------------

// Collective. The relaxation with its snapshots; fills `checksums` (one per snapshot) with --check.
static void run(const struct options* o, struct block* b, struct timing* t, uint64_t* checksums) {
  char path[4096];
  MPI_File file = MPI_FILE_NULL;
  const int snapshots = o->every ? o->iterations / o->every : 0;
  int64_t phase = now_ns();
  if (o->one_file && snapshots) {
    snapshot_path(o, 0, path, sizeof path);
    file = open_file(b, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    t->io += record(t->log, "io", phase, -1);
  }
  phase = now_ns();
  for (int i = 1, snapshot = 0; i <= o->iterations; i++) {
    exchange_halo(b);
    relax(b, o->sweeps);
    if (i < o->iterations && (!o->every || i % o->every)) continue;
    // Also the point where the ranks wait for the slowest: that is not the time of the I/O.
    const double moved = change(b, o->grid);
    if (o->check && o->every && i % o->every == 0) checksums[snapshot] = checksum(b);
    t->compute += record(t->log, "compute", phase, snapshot);
    if (!isfinite(moved)) fail("the grid does not converge");
    if (o->every && i % o->every == 0) {
      phase = now_ns();
      write_snapshot(o, b, file, snapshot);
      // The next halo exchange would wait for the last rank to return; waiting here counts it as the I/O it
      // is.
      MPI_Barrier(b->comm);
      t->io += record(t->log, "io", phase, snapshot++);
    }
    phase = now_ns();
  }
  if (file != MPI_FILE_NULL) {
    check_io(MPI_File_close(&file), "MPI_File_close", path);
    t->io += record(t->log, "io", phase, snapshots);
  }
}

static void print_times(const struct timing* t, double compute_s, double io_s, int64_t checking, int64_t finalizing) {
  const double run_s = (double)(now_ns() - t->start - checking) / 1e9;
  printf("run time      %10.3f s\ncompute time  %10.3f s\n", run_s, compute_s);
  printf("visible I/O   %10.3f s  (%.3f s in MPI_File calls, %.3f s in MPI_Finalize)\n", run_s - compute_s, io_s,
         (double)finalizing / 1e9);
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const struct options o = parse(rank, argc, argv);
  const int snapshots = o.every ? o.iterations / o.every : 0;
  struct block b = make_block(o.grid);
  struct timing t = {.log = open_log(&o, &b)};
  uint64_t* checksums = calloc((size_t)snapshots + 1, sizeof *checksums);
  if (!checksums) fail("no memory");

  MPI_Barrier(b.comm);
  t.start = now_ns();
  run(&o, &b, &t, checksums);

  // The program's time goes on after its last write: to the end of MPI_Finalize, where a library may still
  // have work. What --check takes is left out.
  const double mine[2] = {(double)t.compute / 1e9, (double)t.io / 1e9};
  double slowest[2] = {0, 0};
  MPI_Reduce(mine, slowest, 2, MPI_DOUBLE, MPI_MAX, 0, b.comm);
  const int64_t check_start = now_ns();
  const int wrong = o.check ? count_wrong_blocks(&o, &b, checksums, snapshots) : 0;
  const int64_t checking = now_ns() - check_start;

  if (b.rank == 0)
    printf("jacobi: %d x %d doubles on %d x %d ranks, %d iterations, %d snapshots, %lld bytes\n", o.grid, o.grid,
           b.dims[0], b.dims[1], o.iterations, snapshots, (long long)snapshots * o.grid * o.grid * 8);
  if (b.rank == 0 && o.check) printf("check: %d of %d blocks differ\n", wrong, snapshots * b.ranks);
  const int is_root = b.rank == 0;
  free_block(&b);
  free(checksums);
  const int64_t finalize_start = now_ns();
  MPI_Finalize();
  const int64_t finalizing = record(t.log, "finalize", finalize_start, snapshots);
  if (is_root) print_times(&t, slowest[0], slowest[1], checking, finalizing);
  if (t.log && fclose(t.log)) return 1;
  return wrong != 0;
}
