// A program with MPI_THREAD_MULTIPLE: threads that each have files of their own, and threads that share one handle, reading and writing at explicit
// offsets, by the shared pointer and without blocking, while others open and close. Nothing is lost and nothing mixed up.
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kThreads = 4, kTurns = 40, kInts = 700 };

// Checks of several threads: counted under a lock, told at the end.
static int rank, ranks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int wrong;
static void expect(int good, const char* what) {
  if (good) return;
  pthread_mutex_lock(&lock);
  if (++wrong <= 5) fprintf(stderr, "rank %d of %d, threads: %s is not so\n", rank, ranks, what);
  pthread_mutex_unlock(&lock);
}
#define EXPECT(condition) expect((condition) != 0, #condition)
#define GOOD(call) expect((call) == MPI_SUCCESS, #call)

static MPI_File shared;

static void own_files(int thread) {
  char name[64];
  for (int turn = 0; turn < 5; ++turn) {
    snprintf(name, sizeof name, "threads.%d.%d.%d", rank, thread, turn);
    MPI_File file;
    GOOD(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    int values[kInts];
    for (int k = 0; k < 8; ++k) {
      for (int i = 0; i < kInts; ++i) values[i] = thread * 1000000 + k * 1000 + i;
      GOOD(MPI_File_write(file, values, kInts, MPI_INT, MPI_STATUS_IGNORE));
    }
    for (int k = 0; k < 8; ++k) {
      MPI_Status status;
      int count = 0;
      GOOD(MPI_File_read_at(file, 4L * kInts * k, values, kInts, MPI_INT, &status));
      MPI_Get_count(&status, MPI_INT, &count);
      EXPECT(count == kInts && values[0] == thread * 1000000 + k * 1000 && values[kInts - 1] == values[0] + kInts - 1);
    }
    GOOD(MPI_File_close(&file));
    FILE* stream = fopen(name, "rb");
    EXPECT(stream != NULL);
    if (stream == NULL) continue;
    for (int k = 0; k < 8; ++k) {
      EXPECT(fread(values, 4, kInts, stream) == kInts && values[1] == thread * 1000000 + k * 1000 + 1);
    }
    fclose(stream);
  }
}

static long place(int turn, int thread) { return 4L * kInts * ((turn * ranks + rank) * kThreads + thread); }

static void common_file(int thread) {
  int out[kInts];
  int got[kInts];
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int i = 0; i < kInts; ++i) out[i] = ((turn * ranks + rank) * kThreads + thread) * 1000 + i;
    if (turn % 3 == 0) {
      MPI_Request request;
      MPI_Status status;
      int count = 0;
      GOOD(MPI_File_iwrite_at(shared, place(turn, thread), out, kInts, MPI_INT, &request));
      GOOD(MPI_Wait(&request, &status));
      MPI_Get_count(&status, MPI_INT, &count);
      EXPECT(count == kInts);
    } else {
      GOOD(MPI_File_write_at(shared, place(turn, thread), out, kInts, MPI_INT, MPI_STATUS_IGNORE));
    }
    GOOD(MPI_File_read_at(shared, place(turn, thread), got, kInts, MPI_INT, MPI_STATUS_IGNORE));
    EXPECT(memcmp(out, got, sizeof out) == 0);
    MPI_Offset size = 0;
    GOOD(MPI_File_get_size(shared, &size));
    EXPECT(size >= place(turn, thread) + 4L * kInts);
  }
}

static void* run(void* argument) {
  const int thread = (int)(intptr_t)argument;
  if (thread % 2 == 0) own_files(thread);
  common_file(thread);
  if (thread % 2 == 1) own_files(thread);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  EXPECT(provided == MPI_THREAD_MULTIPLE);
  GOOD(MPI_File_open(MPI_COMM_WORLD, "threads.shared", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &shared));
  pthread_t threads[kThreads];
  for (intptr_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, run, (void*)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  GOOD(MPI_File_close(&shared));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    const int pieces = kTurns * ranks * kThreads;
    FILE* stream = fopen("threads.shared", "rb");
    int values[kInts];
    for (int piece = 0; piece < pieces; ++piece) {
      EXPECT(fread(values, 4, kInts, stream) == kInts && values[0] == piece * 1000 &&
             values[kInts - 1] == piece * 1000 + kInts - 1);
    }
    EXPECT(fgetc(stream) == EOF);
    fclose(stream);
  }
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all != 0;
}
