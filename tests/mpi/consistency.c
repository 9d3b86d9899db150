// Who sees what, and when: MPI's own rules (MPI-4.1 §14.6), and what HDF5 and PnetCDF rely on beyond them: a write that has returned is seen by
// whoever hears of it, through any handle on the file; the later of two writes to one place wins, whatever kind of call they were.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "run.h"

// Rank 0 writes what the others need; a barrier is all there is between.
static void seen_after_a_barrier(void) {
  enum { kBytes = 3000 };
  MPI_File file = create_world("");
  unsigned char mine[kBytes];
  unsigned char got[kBytes];
  for (unsigned turn = 0; turn < 6; ++turn) {
    const int writer = (int)turn % ranks;
    fill_bytes(mine, kBytes, turn, 0);
    if (turn % 2 == 0) {
      if (rank == writer) OK(MPI_File_write_at(file, 10, mine, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_File_write_at_all(file, 10, mine, rank == writer ? kBytes : 0, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    barrier();
    memset(got, 0, sizeof got);
    if (turn % 3 == 0) {
      OK(MPI_File_read_at_all(file, 10, got, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_File_read_at(file, 10, got, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    CHECK_BYTES(got, mine, kBytes);
    barrier();
  }
  OK(MPI_File_close(&file));
}

// A counter in the file goes round with a message.
static void token(void) {
  MPI_File file = create_world("");
  int zero[256] = {0};
  OK(MPI_File_write_at_all(file, 1024 * rank, zero, 256, MPI_INT, MPI_STATUS_IGNORE));
  enum { kRounds = 5 };
  for (int round = 0; round < kRounds; ++round) {
    int go = round;
    if (rank > 0 || round > 0)
      MPI_Recv(&go, 1, MPI_INT, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int count = -1;
    OK(MPI_File_read_at(file, 512, &count, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_INT(count, round * ranks + rank);
    ++count;
    OK(MPI_File_write_at(file, 512, &count, 1, MPI_INT, MPI_STATUS_IGNORE));
    const int last = round == kRounds - 1 && rank == ranks - 1;
    if (!last) MPI_Send(&go, 1, MPI_INT, (rank + 1) % ranks, 1, MPI_COMM_WORLD);
  }
  OK(MPI_File_close(&file));
  int* all = new_bytes(1024LL * ranks);
  all[128] = kRounds * ranks;
  CHECK_FILE_AT_ROOT(file_name(""), all, 1024LL * ranks);
  free(all);
}

// Shared pseudo-random numbers: every rank plans the same steps and keeps the same model of the file.
static uint64_t plan;
static int draw(int limit) {
  plan ^= plan << 13;
  plan ^= plan >> 7;
  plan ^= plan << 17;
  return (int)((plan * UINT64_C(0x2545f4914f6cdd1d) >> 33) % (uint64_t)limit);
}

enum { kModelBytes = 60000 };
struct model {
  unsigned char bytes[kModelBytes];
  int size;
};

static void model_write(struct model* model, int begin, int length, unsigned seed) {
  if (length == 0) return;
  fill_bytes(model->bytes + begin, length, seed, begin);
  if (begin + length > model->size) model->size = begin + length;
}

static void compare(MPI_File file, const struct model* model, int collective) {
  unsigned char* got = new_bytes(kModelBytes);
  MPI_Status status;
  MPI_Offset size = 0;
  OK(MPI_File_get_size(file, &size));
  CHECK_INT(size, model->size);
  if (collective) {
    OK(MPI_File_read_at_all(file, 0, got, kModelBytes, MPI_BYTE, &status));
  } else {
    OK(MPI_File_read_at(file, 0, got, kModelBytes, MPI_BYTE, &status));
  }
  CHECK_ELEMENTS(&status, MPI_BYTE, model->size);
  CHECK_BYTES(got, model->bytes, model->size);
  free(got);
}

static void collective_write(MPI_File file, struct model* model, unsigned seed, unsigned char* memory) {
  // The ranks' pieces in random order, with and without gaps.
  int order[16];
  for (int i = 0; i < ranks; ++i) order[i] = i;
  for (int i = ranks - 1; i > 0; --i) {
    const int k = draw(i + 1);
    const int was = order[i];
    order[i] = order[k];
    order[k] = was;
  }
  int at = draw(kModelBytes / 2);
  const int most = (kModelBytes - at) / ranks / 2;
  int begin = 0;
  int length = 0;
  for (int i = 0; i < ranks; ++i) {
    const int piece = draw(4) == 0 ? 0 : draw(most);
    if (order[i] == rank) {
      begin = at;
      length = piece;
    }
    model_write(model, at, piece, seed);
    at += piece + (draw(2) ? draw(most) : 0);
  }
  fill_bytes(memory, length, seed, begin);
  OK(MPI_File_write_at_all(file, begin, memory, length, MPI_BYTE, MPI_STATUS_IGNORE));
}

// Random steps of all kinds on one file through a handle of all ranks and one of each rank alone; whoever writes, a barrier later all see it.
static void random_steps(void) {
  enum { kSteps = 120 };
  plan = UINT64_C(88172645463325252) + (uint64_t)ranks;
  struct model* model = new_bytes((long long)sizeof *model);
  unsigned char* memory = new_bytes(kModelBytes);
  MPI_File file = create_world("");
  MPI_File alone;
  OK(MPI_File_open(MPI_COMM_SELF, file_name(""), MPI_MODE_RDWR, MPI_INFO_NULL, &alone));
  for (unsigned step = 1; step <= kSteps; ++step) {
    extern int failures;
    const int before = failures;
    const int what = draw(10);
    if (what < 4) {
      collective_write(file, model, step, memory);
    } else if (what < 7) {
      const int writer = draw(ranks);
      const int begin = draw(kModelBytes);
      const int length = draw(draw(2) ? 100 : kModelBytes - begin + 1) % (kModelBytes - begin + 1);
      const int through_own = draw(2);
      model_write(model, begin, length, step);
      if (rank == writer) {
        fill_bytes(memory, length, step, begin);
        OK(MPI_File_write_at(through_own ? alone : file, begin, memory, length, MPI_BYTE, MPI_STATUS_IGNORE));
      }
    } else if (what == 7) {
      const int size = draw(kModelBytes);
      if (size < model->size) memset(model->bytes + size, 0, (size_t)(model->size - size));
      model->size = size;
      OK(MPI_File_set_size(file, size));
    } else if (what == 8) {
      OK(MPI_File_sync(file));
    } else {
      OK(MPI_File_close(&file));
      barrier();
      file = open_world("", MPI_MODE_RDWR);
    }
    barrier();
    const int look = draw(4);
    if (look == 0) compare(file, model, 1);
    if (look == 1) compare(file, model, 0);
    if (look == 2) compare(alone, model, 0);
    barrier();
    if (failures > before) fprintf(stderr, "rank %d: that was step %u, of kind %d\n", rank, step, what);
  }
  OK(MPI_File_close(&alone));
  OK(MPI_File_close(&file));
  CHECK_FILE_AT_ROOT(file_name(""), model->bytes, model->size);
  free(memory);
  free(model);
}

// PnetCDF's two handles: one of all ranks, one of each alone; closed in either order.
static void two_handles(void) {
  enum { kBytes = 2000 };
  for (int turn = 0; turn < 2; ++turn) {
    MPI_File all = create_world("");
    MPI_File alone;
    OK(MPI_File_open(MPI_COMM_SELF, file_name(""), MPI_MODE_RDWR, MPI_INFO_NULL, &alone));
    unsigned char mine[kBytes];
    unsigned char got[kBytes];
    const MPI_Offset at = (MPI_Offset)kBytes * rank;
    fill_bytes(mine, kBytes, 1, at);
    OK(MPI_File_write_at_all(all, at, mine, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    barrier();
    const MPI_Offset next = (MPI_Offset)kBytes * ((rank + 1) % ranks);
    fill_bytes(mine, kBytes, 1, next);
    OK(MPI_File_read_at(alone, next, got, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_BYTES(got, mine, kBytes);
    MPI_Offset size = 0;
    OK(MPI_File_get_size(alone, &size));
    CHECK_INT(size, kBytes * ranks);
    barrier();
    // The other way round: each rank replaces the middle of its neighbour's bytes.
    fill_bytes(mine, 500, 2, next + 700);
    OK(MPI_File_write_at(alone, next + 700, mine, 500, MPI_BYTE, MPI_STATUS_IGNORE));
    barrier();
    unsigned char* expected = new_bytes((long long)kBytes * ranks);
    unsigned char* file_bytes = new_bytes((long long)kBytes * ranks);
    fill_bytes(expected, (long long)kBytes * ranks, 1, 0);
    for (int r = 0; r < ranks; ++r) fill_bytes(expected + kBytes * r + 700, 500, 2, kBytes * r + 700);
    OK(MPI_File_read_at_all(all, 0, file_bytes, kBytes * ranks, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_BYTES(file_bytes, expected, (long long)kBytes * ranks);
    OK(MPI_File_close(turn == 0 ? &all : &alone));
    OK(MPI_File_close(turn == 0 ? &alone : &all));
    CHECK_FILE_AT_ROOT(file_name(""), expected, (long long)kBytes * ranks);
    free(file_bytes);
    free(expected);
  }
}

// MPI's own rule between handles: sync, barrier, sync.
static void sync_barrier_sync(void) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_File whole = create_world("");
  MPI_File part;
  OK(MPI_File_open(half, file_name(""), MPI_MODE_RDWR, MPI_INFO_NULL, &part));
  int x = 5 * rank;
  OK(MPI_File_write_at_all(part, 4 * rank, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(part));
  barrier();
  OK(MPI_File_sync(whole));
  int got[16] = {0};
  int expected[16] = {0};
  for (int r = 0; r < ranks; ++r) expected[r] = 5 * r;
  OK(MPI_File_read_at_all(whole, 0, got, ranks, MPI_INT, MPI_STATUS_IGNORE));
  CHECK_BYTES(got, expected, 4 * ranks);
  OK(MPI_File_close(&part));
  OK(MPI_File_close(&whole));
  CHECK_FILE_AT_ROOT(file_name(""), expected, 4 * ranks);
  MPI_Comm_free(&half);
}

// In atomic mode what ranks write to the same place at the same time is somebody's, whole; and is seen without a sync.
static void atomic_mode(void) {
  enum { kInts = 3000, kTurns = 8 };
  MPI_File file = create_world("");
  OK(MPI_File_set_atomicity(file, 1));
  int flag = 0;
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK_INT(flag, 1);
  MPI_Datatype type;
  MPI_Type_create_resized(MPI_INT, 0, 12, &type);
  MPI_Type_commit(&type);
  int mine[kInts];
  int got[kInts];
  for (int scattered = 0; scattered < 2; ++scattered) {
    OK(MPI_File_set_view(file, 40000 * scattered, MPI_INT, scattered ? type : MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < kInts; ++i) mine[i] = -1;
    if (rank == 0) OK(MPI_File_write_at(file, 0, mine, kInts, MPI_INT, MPI_STATUS_IGNORE));
    barrier();
    for (int turn = 0; turn < kTurns; ++turn) {
      for (int i = 0; i < kInts; ++i) mine[i] = turn * 100 + rank;
      if (turn % 2 == 0) {
        OK(MPI_File_write_at(file, 0, mine, kInts, MPI_INT, MPI_STATUS_IGNORE));
      } else {
        OK(MPI_File_write_at_all(file, 0, mine, kInts, MPI_INT, MPI_STATUS_IGNORE));
      }
      OK(MPI_File_read_at(file, 0, got, kInts, MPI_INT, MPI_STATUS_IGNORE));
      for (int i = 1; i < kInts; ++i) {
        if (got[i] != got[0]) {
          CHECK_INT(got[i], got[0]);
          break;
        }
      }
      CHECK(got[0] / 100 >= turn && got[0] % 100 < ranks);
      barrier();
    }
  }
  OK(MPI_File_set_atomicity(file, 0));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(file, rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  int* all = new_bytes(4LL * kInts);
  for (int i = 0; i < ranks; ++i) all[i] = i;
  barrier();
  if (rank == 0) {
    OK(MPI_File_open(MPI_COMM_SELF, file_name(""), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_read(file, got, ranks, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_BYTES(got, all, 4 * ranks);
    OK(MPI_File_close(&file));
  }
  free(all);
  MPI_Type_free(&type);
}

// Memory may be used again when a blocking write has returned.
static void buffers_reused(void) {
  enum { kInts = 20000, kTurns = 10 };
  MPI_File file = create_world("");
  int* memory = new_bytes(4LL * kInts);
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int i = 0; i < kInts; ++i) memory[i] = turn * 1000000 + i;
    const MPI_Offset at = 4LL * kInts * (turn * ranks + rank);
    OK(MPI_File_write_at_all(file, at, memory, kInts, MPI_INT, MPI_STATUS_IGNORE));
    memset(memory, 0xff, 4 * kInts);
  }
  OK(MPI_File_close(&file));
  int* all = new_bytes(4LL * kInts * kTurns * ranks);
  for (int i = 0; i < kInts * kTurns * ranks; ++i) all[i] = i / kInts / ranks * 1000000 + i % kInts;
  CHECK_FILE_AT_ROOT(file_name(""), all, 4LL * kInts * kTurns * ranks);
  free(all);
  free(memory);
}

const struct test_case kConsistencyCases[] = {
    {"consistency.seen_after_a_barrier", seen_after_a_barrier, 1},
    {"consistency.token", token, 2},
    {"consistency.random_steps", random_steps, 1},
    {"consistency.two_handles", two_handles, 1},
    {"consistency.sync_barrier_sync", sync_barrier_sync, 1},
    {"consistency.atomic_mode", atomic_mode, 1},
    {"consistency.buffers_reused", buffers_reused, 1},
    {NULL, NULL, 0},
};
