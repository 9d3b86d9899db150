// The collective write micro-benchmark of §4.1 of "Improving MPI-IO Output Performance with Active Buffering
// Plus Threads". It is plain C and MPI and knows nothing of Spillway.
//
// A 3-D array of int, the same size on every rank, is written several times by MPI_File_write_all, each time
// behind the last in one shared file, with time to think in between so that whatever works in the background
// can finish. What counts is how long the slowest rank stays in the call. Before each call all ranks copy the
// same number of bytes in memory at once: the speed nothing that keeps a copy can exceed.
//
// Prints one line of JSON. bench/abt.py runs it in all configurations.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char kUsage[] =
    "usage: mpiexec -n P abt [option]...\n"
    "  --mib N             MiB of every rank (32)\n"
    "  --distribution D    conforming: [BLOCK, *, *], as in the file; blocks: [BLOCK, BLOCK, BLOCK] "
    "(conforming)\n"
    "  --calls N           how many times the array is written (4)\n"
    "  --think SECONDS     sleep after each call (1)\n"
    "  --output PATH       the file to write (abt.out)\n"
    "  --check             read the file back with POSIX calls after MPI_File_close and compare\n";

enum { CALLS_MAX = 100, ROWS = 128, ROW_INTS = 128 };  // of the block of one rank: (16 x MiB) x ROWS x ROW_INTS

struct options {
  int mib, blocks, calls, check;
  double think;
  const char* output;
};

// The array of all ranks and this rank's block of it, in ints.
struct array {
  int rank, ranks, parts[3];  // parts: blocks along each dimension
  int whole[3], block[3], first[3];
  size_t block_ints;
  MPI_Datatype in_file;
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// Ends the whole program with a message. Any one rank may call it, for whatever went wrong on that rank
// alone.
__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "abt: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);  // some MPIs return from MPI_Abort while they tell the other ranks
}

static void check_io(int result, const char* call) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (result == MPI_SUCCESS) return;
  MPI_Error_string(result, text, &length);
  fail("%s: %s", call, text);
}

// All ranks parse the same arguments, so all reach the same verdict; rank 0 alone says it.
__attribute__((noreturn)) static void refuse(int rank, const char* name, const char* accepted) {
  if (rank == 0) fprintf(stderr, "abt: %s: must be %s\n%s", name, accepted, kUsage);
  MPI_Finalize();
  exit(2);
}

static double parse_number(int rank, const char* name, const char* text, double least, double most) {
  char *end = NULL, accepted[80];
  const double value = strtod(text, &end);
  snprintf(accepted, sizeof accepted, "a number from %g to %g", least, most);
  if (end == text || *end || !(value >= least && value <= most)) refuse(rank, name, accepted);
  return value;
}

static struct options parse(int rank, int argc, char** argv) {
  struct options o = {.mib = 32, .calls = 4, .think = 1, .output = "abt.out"};
  for (int i = 1; i < argc; i++) {
    const char *name = argv[i], *value = argv[i + 1];
    if (!strcmp(name, "--check")) {
      o.check = 1;
      continue;
    }
    if (!value) refuse(rank, name, "an option, with a value");
    i++;
    if (!strcmp(name, "--mib"))
      o.mib = (int)parse_number(rank, name, value, 1, 1024);
    else if (!strcmp(name, "--calls"))
      o.calls = (int)parse_number(rank, name, value, 1, CALLS_MAX);
    else if (!strcmp(name, "--think"))
      o.think = parse_number(rank, name, value, 0, 3600);
    else if (!strcmp(name, "--output"))
      o.output = value;
    else if (strcmp(name, "--distribution"))
      refuse(rank, name, "one of the options below");
    else if (!strcmp(value, "blocks"))
      o.blocks = 1;
    else if (!strcmp(value, "conforming"))
      o.blocks = 0;
    else
      refuse(rank, name, "conforming or blocks");
  }
  return o;
}

// Collective over MPI_COMM_WORLD. The array grows with the ranks, in the dimensions in which they are added.
static struct array make_array(const struct options* o) {
  struct array a = {.block = {16 * o->mib, ROWS, ROW_INTS}};
  MPI_Comm_rank(MPI_COMM_WORLD, &a.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &a.ranks);
  a.parts[1] = a.parts[2] = o->blocks ? 0 : 1;
  MPI_Dims_create(a.ranks, 3, a.parts);
  const int place[3] = {a.rank / (a.parts[1] * a.parts[2]), a.rank / a.parts[2] % a.parts[1], a.rank % a.parts[2]};
  for (int d = 0; d < 3; d++) {
    a.whole[d] = a.parts[d] * a.block[d];
    a.first[d] = place[d] * a.block[d];
  }
  a.block_ints = (size_t)a.block[0] * ROWS * ROW_INTS;
  MPI_Type_create_subarray(3, a.whole, a.block, a.first, MPI_ORDER_C, MPI_INT, &a.in_file);
  MPI_Type_commit(&a.in_file);
  return a;
}

// What belongs at that place of the array in that call.
static int32_t value_at(int call, uint64_t place) {
  const uint64_t x = (place + UINT64_C(0x632be59bd9b4e019) * (uint64_t)(call + 1)) * UINT64_C(0x9e3779b97f4a7c15);
  return (int32_t)(x >> 32);
}

static void fill(const struct array* a, int call, int32_t* data) {
  for (int i = 0; i < a->block[0]; i++)
    for (int j = 0; j < a->block[1]; j++) {
      const uint64_t row = (uint64_t)(a->first[0] + i) * (uint64_t)a->whole[1] + (uint64_t)(a->first[1] + j);
      const uint64_t place = row * (uint64_t)a->whole[2] + (uint64_t)a->first[2];
      for (int k = 0; k < a->block[2]; k++) *data++ = value_at(call, place + (uint64_t)k);
    }
}

// How long something took on all ranks, in seconds.
struct span {
  double slowest;  // the longest any one rank took: the paper's measure
  double all;      // from the first start to the last end, where all ranks have one clock. More than `slowest`
                   // when ranks share a core and one starts while another has already ended
};

// Collective, the same on every rank.
static struct span span_of(double start, double end) {
  const double mine[3] = {end - start, end, -start};
  double most[3];
  MPI_Allreduce(mine, most, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return (struct span){most[0], most[1] + most[2]};
}

static struct span time_copy(const struct array* a, int32_t* to, const int32_t* from) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now();
  memcpy(to, from, a->block_ints * sizeof *to);
  const double end = now();
  if (to[a->block_ints - 1] != from[a->block_ints - 1]) fail("the copy is wrong");
  return span_of(start, end);
}

static struct span time_write(const struct array* a, MPI_File file, int call, const int32_t* data) {
  const MPI_Offset all_bytes = (MPI_Offset)a->block_ints * a->ranks * (MPI_Offset)sizeof *data;
  MPI_Status status;
  int count = 0;
  check_io(MPI_File_set_view(file, call * all_bytes, MPI_INT, a->in_file, "native", MPI_INFO_NULL),
           "MPI_File_set_view");
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now();
  const int result = MPI_File_write_all(file, data, (int)a->block_ints, MPI_INT, &status);
  const double end = now();
  check_io(result, "MPI_File_write_all");
  MPI_Get_count(&status, MPI_INT, &count);
  if ((size_t)count != a->block_ints) fail("MPI_File_write_all: %d of %zu ints", count, a->block_ints);
  return span_of(start, end);
}

// Collective. Every rank reads its share of the whole file with POSIX calls; returns how many ints of all are
// wrong.
static long long count_wrong(const struct options* o, const struct array* a) {
  const uint64_t array_ints = (uint64_t)a->block_ints * (uint64_t)a->ranks;
  const uint64_t total = array_ints * (uint64_t)o->calls, share = total / (uint64_t)a->ranks;
  enum { PIECE_INTS = 1 << 18 };
  int32_t* piece = malloc(PIECE_INTS * sizeof *piece);
  const int fd = open(o->output, O_RDONLY);
  if (fd < 0 || !piece) fail("%s: %s", o->output, strerror(errno));
  const uint64_t begin = share * (uint64_t)a->rank, end = a->rank == a->ranks - 1 ? total : begin + share;
  long long mine = 0, all = 0;
  for (uint64_t at = begin; at < end; at += PIECE_INTS) {
    const size_t ints = end - at < PIECE_INTS ? (size_t)(end - at) : PIECE_INTS;
    const ssize_t got = pread(fd, piece, ints * sizeof *piece, (off_t)(at * sizeof *piece));
    if (got != (ssize_t)(ints * sizeof *piece))
      fail("%s: %zd bytes instead of %zu", o->output, got, ints * sizeof *piece);
    for (size_t i = 0; i < ints; i++) mine += piece[i] != value_at((int)((at + i) / array_ints), (at + i) % array_ints);
  }
  if (a->rank == a->ranks - 1 && lseek(fd, 0, SEEK_END) != (off_t)(total * sizeof *piece)) mine++;
  close(fd);
  free(piece);
  MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static void think(double seconds) {
  const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

static void print_spans(const char* name, const struct span* spans, int count) {
  printf("\"%s_s\": [", name);
  for (int i = 0; i < count; i++) printf("%s%.6f", i ? ", " : "", spans[i].slowest);
  printf("], \"%s_span_s\": [", name);
  for (int i = 0; i < count; i++) printf("%s%.6f", i ? ", " : "", spans[i].all);
  printf("], ");
}

int main(int argc, char** argv) {
  int rank = 0;
  struct span writes[CALLS_MAX], copies[CALLS_MAX];
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const struct options o = parse(rank, argc, argv);
  struct array a = make_array(&o);
  int32_t *data = malloc(a.block_ints * sizeof *data), *copy = malloc(a.block_ints * sizeof *copy);
  if (!data || !copy) fail("no memory for two blocks of %d MiB", o.mib);
  memset(copy, 1, a.block_ints * sizeof *copy);

  check_io(MPI_File_open(MPI_COMM_WORLD, o.output, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file),
           "MPI_File_open");
  check_io(MPI_File_set_size(file, 0), "MPI_File_set_size");
  for (int call = 0; call < o.calls; call++) {
    fill(&a, call, data);
    copies[call] = time_copy(&a, copy, data);
    writes[call] = time_write(&a, file, call, data);
    think(o.think);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double close_start = now();
  check_io(MPI_File_close(&file), "MPI_File_close");
  const double close_s = span_of(close_start, now()).slowest;
  const long long wrong = o.check ? count_wrong(&o, &a) : 0;

  if (a.rank == 0) {
    printf("{\"ranks\": %d, \"distribution\": \"%s\", \"parts\": [%d, %d, %d], \"array\": [%d, %d, %d], ", a.ranks,
           o.blocks ? "blocks" : "conforming", a.parts[0], a.parts[1], a.parts[2], a.whole[0], a.whole[1], a.whole[2]);
    printf("\"call_bytes\": %lld, ", (long long)a.block_ints * a.ranks * (long long)sizeof *data);
    print_spans("write", writes, o.calls);
    print_spans("memcpy", copies, o.calls);
    printf("\"close_s\": %.6f, \"checked\": %s, \"wrong_ints\": %lld}\n", close_s, o.check ? "true" : "false", wrong);
  }
  MPI_Type_free(&a.in_file);
  free(data);
  free(copy);
  MPI_Finalize();
  return wrong != 0;
}
