// Files of all kinds of communicators: duplicates, parts, other orders, intercommunicators; communicators that end before their files; many files
// at once; the same file opened in several groups and by each rank alone.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void write_own_place(MPI_Comm comm, MPI_File file, int value) {
  int me = 0;
  MPI_Comm_rank(comm, &me);
  OK(MPI_File_write_at_all(file, 4 * me, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
}

// The communicator is freed while the file is open; MPI says nothing against it.
static void freed_early(void) {
  for (int turn = 0; turn < 3; ++turn) {
    MPI_Comm comm;
    if (turn == 0) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (turn > 0) MPI_Comm_split(MPI_COMM_WORLD, 0, turn == 1 ? -rank : rank * 7 % ranks, &comm);
    int me = 0;
    MPI_Comm_rank(comm, &me);
    MPI_File file;
    OK(MPI_File_open(comm, file_name(""), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_Comm_free(&comm);
    const int value = 10 * turn + me;
    OK(MPI_File_write_at_all(file, 4 * me, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_write_ordered(file, &value, 0, MPI_INT, MPI_STATUS_IGNORE));
    int got[16] = {0};
    barrier();
    OK(MPI_File_read_at_all(file, 0, got, ranks, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < ranks; ++i) CHECK_INT(got[i], 10 * turn + i);
    OK(MPI_File_close(&file));
    barrier();
  }
}

static void parts(void) {
  // Each group its own file, groups of different sizes, closed at different times.
  MPI_Comm comm;
  const int color = rank % 3;
  MPI_Comm_split(MPI_COMM_WORLD, color, rank, &comm);
  char suffix[16];
  snprintf(suffix, sizeof suffix, "%d", color);
  MPI_File file;
  OK(MPI_File_open(comm, file_name(suffix), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  for (int i = 0; i <= color; ++i) write_own_place(comm, file, 100 * i + rank);
  OK(MPI_File_close(&file));
  MPI_Comm_free(&comm);
  barrier();
  if (rank == 0) {
    for (int c = 0; c < 3 && c < ranks; ++c) {
      int all[16];
      int count = 0;
      for (int r = c; r < ranks; r += 3) all[count++] = 100 * c + r;
      snprintf(suffix, sizeof suffix, "%d", c);
      CHECK_FILE(file_name(suffix), all, 4 * count);
    }
  }
  // Only some ranks open anything at all.
  MPI_Comm_split(MPI_COMM_WORLD, rank == ranks - 1 ? 0 : MPI_UNDEFINED, 0, &comm);
  if (comm != MPI_COMM_NULL) {
    OK(MPI_File_open(comm, file_name("last"), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_write_all(file, "last", 4, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    MPI_Comm_free(&comm);
    CHECK_FILE(file_name("last"), "last", 4);
  }
  barrier();
}

// One file: opened by each rank alone, by halves and by all, at the same time.
static void one_file_in_many_ways(void) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank < ranks / 2, rank, &half);
  MPI_File all = create_world("");
  MPI_File some;
  MPI_File alone;
  OK(MPI_File_open(half, file_name(""), MPI_MODE_RDWR, MPI_INFO_NULL, &some));
  OK(MPI_File_open(MPI_COMM_SELF, file_name(""), MPI_MODE_RDWR, MPI_INFO_NULL, &alone));
  int x = rank;
  OK(MPI_File_write_at(alone, 12 * rank, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_write_at_all(some, 12 * rank + 4, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_write_at_all(all, 12 * rank + 8, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
  barrier();
  MPI_File handles[] = {alone, some, all};
  for (int i = 0; i < 3; ++i) {
    int got[48] = {0};
    MPI_Status status;
    OK(MPI_File_read_at(handles[i], 0, got, 3 * ranks, MPI_INT, &status));
    CHECK_ELEMENTS(&status, MPI_INT, 3 * ranks);
    for (int k = 0; k < 3 * ranks; ++k) CHECK_INT(got[k], k / 3);
  }
  barrier();
  OK(MPI_File_close(&some));
  OK(MPI_File_close(&all));
  OK(MPI_File_close(&alone));
  int expected[48];
  for (int k = 0; k < 3 * ranks; ++k) expected[k] = k / 3;
  CHECK_FILE_AT_ROOT(file_name(""), expected, 12 * ranks);
  MPI_Comm_free(&half);
}

static void many_files(void) {
  enum { kFiles = 60 };
  MPI_File files[kFiles];
  char suffix[16];
  for (int i = 0; i < kFiles; ++i) {
    snprintf(suffix, sizeof suffix, "%d", i);
    OK(MPI_File_open(i % 3 == 2 ? MPI_COMM_SELF : MPI_COMM_WORLD, file_name(suffix), MPI_MODE_CREATE | MPI_MODE_RDWR,
                     MPI_INFO_NULL, &files[i]));
  }
  barrier();
  for (int i = 0; i < kFiles; ++i) {
    const int x = 1000 * i + rank;
    if (i % 3 == 2) {
      OK(MPI_File_write_at(files[i], 4 * rank, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_File_write_at_all(files[i], 4 * rank, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
    }
  }
  for (int i = 0; i < kFiles; ++i) OK(MPI_File_close(&files[i * 7 % kFiles]));
  barrier();
  for (int i = rank; i < kFiles; i += ranks) {
    int all[16];
    for (int r = 0; r < ranks; ++r) all[r] = 1000 * i + r;
    snprintf(suffix, sizeof suffix, "%d", i);
    CHECK_FILE(file_name(suffix), all, 4 * ranks);
  }
  barrier();
}

// Communicators that come and go.
static void many_communicators(void) {
  for (int i = 0; i < 40; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_File file;
    OK(MPI_File_open(comm, file_name(""), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    write_own_place(comm, file, i + rank);
    OK(MPI_File_close(&file));
    MPI_Comm_free(&comm);
  }
  int all[16];
  for (int r = 0; r < ranks; ++r) all[r] = 39 + r;
  CHECK_FILE_AT_ROOT(file_name(""), all, 4 * ranks);
}

static void intercommunicator(void) {
  MPI_Comm half;
  MPI_Comm inter;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 3, &inter);
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_File file;
  CHECK_CLASS(MPI_File_open(inter, file_name(""), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_COMM);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

const struct test_case kCommunicatorCases[] = {
    {"communicators.freed_early", freed_early, 1},
    {"communicators.parts", parts, 1},
    {"communicators.one_file_in_many_ways", one_file_in_many_ways, 1},
    {"communicators.many_files", many_files, 1},
    {"communicators.many_communicators", many_communicators, 1},
    {"communicators.intercommunicator", intercommunicator, 2},
    {NULL, NULL, 0},
};
