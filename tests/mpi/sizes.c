// The size of a file: asked for by one rank while bytes of all are pending; set smaller and larger, so that what was cut off does not come back;
// preallocation; files that are deleted, at close or by name, with bytes pending, and made again.
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static MPI_Offset size_of(MPI_File file) {
  MPI_Offset size = -1;
  OK(MPI_File_get_size(file, &size));
  return size;
}

// What HDF5 does at a flush: rank 0 alone asks, after a barrier, and every rank's writes count.
static void size_on_one_rank(void) {
  MPI_File file = create_world("");
  char mine[100];
  memset(mine, 'x', sizeof mine);
  for (int turn = 1; turn <= 3; ++turn) {
    const MPI_Offset begin = (MPI_Offset)(turn - 1) * 100 * ranks;
    if (turn == 2) {
      OK(MPI_File_write_at_all(file, begin + 100 * rank, mine, 100, MPI_CHAR, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_File_write_at(file, begin + 100 * rank, mine, 100, MPI_CHAR, MPI_STATUS_IGNORE));
    }
    barrier();
    MPI_Offset size = rank == 0 ? size_of(file) : -1;
    MPI_Bcast(&size, 1, MPI_OFFSET, 0, MPI_COMM_WORLD);
    CHECK_INT(size, 100 * ranks * turn);
  }
  OK(MPI_File_set_size(file, 300 * ranks + 5));
  CHECK_INT(size_of(file), 300 * ranks + 5);
  OK(MPI_File_close(&file));
}

static void cut_and_grow(void) {
  enum { kEach = 3000 };
  const long long all_bytes = (long long)kEach * ranks;
  const long long kept = all_bytes / 3 + 1;
  MPI_File file = create_world("");
  unsigned char* all = new_bytes(2 * all_bytes);
  fill_bytes(all, all_bytes, 5, 0);
  for (int turn = 0; turn < 3; ++turn) {
    // Collectively, alone, and both.
    const MPI_Offset at = (MPI_Offset)kEach * rank;
    if (turn != 1) OK(MPI_File_write_at_all(file, at, all + at, kEach, MPI_BYTE, MPI_STATUS_IGNORE));
    if (turn != 0) OK(MPI_File_write_at(file, at, all + at, kEach, MPI_BYTE, MPI_STATUS_IGNORE));
    barrier();
    OK(MPI_File_set_size(file, kept));
    CHECK_INT(size_of(file), kept);
    OK(MPI_File_set_size(file, all_bytes + 17));
    CHECK_INT(size_of(file), all_bytes + 17);
    unsigned char* got = new_bytes(all_bytes + 17);
    unsigned char* expected = new_bytes(all_bytes + 17);
    memcpy(expected, all, (size_t)kept);
    MPI_Status status;
    OK(MPI_File_read_at_all(file, 0, got, (int)all_bytes + 17, MPI_BYTE, &status));
    CHECK_ELEMENTS(&status, MPI_BYTE, all_bytes + 17);
    CHECK_BYTES(got, expected, all_bytes + 17);
    barrier();
    if (turn == 2) {
      OK(MPI_File_close(&file));
      CHECK_FILE_AT_ROOT(file_name(""), expected, all_bytes + 17);
    }
    free(got);
    free(expected);
  }
  free(all);
}

// Cut to nothing and written again, as programs do that make a file anew.
static void made_anew(void) {
  MPI_File file = create_world("");
  char mine[64];
  for (int turn = 0; turn < 4; ++turn) {
    memset(mine, 'a' + turn, sizeof mine);
    OK(MPI_File_write_at_all(file, 64 * rank, mine, turn == 3 ? 10 : 64, MPI_CHAR, MPI_STATUS_IGNORE));
    if (turn == 3) break;
    OK(MPI_File_set_size(file, 0));
    CHECK_INT(size_of(file), 0);
    barrier();
  }
  OK(MPI_File_close(&file));
  char* all = new_bytes(64LL * ranks);
  for (int r = 0; r < ranks; ++r) memset(all + 64 * r, 'd', 10);
  CHECK_FILE_AT_ROOT(file_name(""), all, 64LL * (ranks - 1) + 10);
  free(all);
}

static void preallocated(void) {
  MPI_File file = create_world("");
  OK(MPI_File_write_at_all(file, rank, "p", 1, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_preallocate(file, 5000));
  CHECK_INT(size_of(file), 5000);
  OK(MPI_File_preallocate(file, 10));  // never smaller
  CHECK_INT(size_of(file), 5000);
  OK(MPI_File_close(&file));
  char all[5000] = {0};
  memset(all, 'p', (size_t)ranks);
  CHECK_FILE_AT_ROOT(file_name(""), all, 5000);
}

static int exists(const char* name) {
  struct stat st;
  return stat(name, &st) == 0;
}

static void delete_on_close(void) {
  if (rank == 0) remove(file_name(""));
  barrier();
  MPI_File file = open_world("", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  char mine[5000];
  memset(mine, 'd', sizeof mine);
  OK(MPI_File_write_at_all(file, 5000 * rank, mine, 5000, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  CHECK(exists(file_name("")));
  OK(MPI_File_write_at_all(file, 5000 * rank, mine, 5000, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL);
  barrier();
  CHECK(!exists(file_name("")));
  barrier();
  // The same name again: nothing of the old one comes back.
  file = open_world("", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
  CHECK_INT(size_of(file), 0);
  barrier();
  OK(MPI_File_write_at_all(file, rank, "n", 1, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  CHECK_FILE_AT_ROOT(file_name(""), "nnnnnnnnnnnnnnnn", ranks);
}

static void deleted_and_made_again(void) {
  char mine[4096];
  for (int turn = 0; turn < 6; ++turn) {
    memset(mine, 'A' + turn, sizeof mine);
    const int bytes = turn % 2 == 0 ? 4096 : 9;
    MPI_File file = open_world("", MPI_MODE_CREATE | MPI_MODE_RDWR);
    if (turn % 3 != 2) {
      OK(MPI_File_write_at_all(file, 4096 * rank, mine, bytes, MPI_CHAR, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_File_write_at(file, 4096 * rank, mine, bytes, MPI_CHAR, MPI_STATUS_IGNORE));
    }
    OK(MPI_File_close(&file));
    barrier();
    if (rank == 0 && turn < 5) {
      // By MPI, by libc, and by another file's taking its name.
      if (turn % 3 == 0) OK(MPI_File_delete(file_name(""), MPI_INFO_NULL));
      if (turn % 3 == 1) CHECK_INT(unlink(file_name("")), 0);
      if (turn % 3 == 2) {
        FILE* other = fopen(file_name("tmp"), "w");
        char from[256];
        snprintf(from, sizeof from, "%s", file_name("tmp"));
        fclose(other);
        CHECK_INT(rename(from, file_name("")), 0);
      }
    }
    barrier();
  }
  char* all = new_bytes(4096LL * ranks);
  for (int r = 0; r < ranks; ++r) memset(all + 4096 * r, 'F', 9);
  CHECK_FILE_AT_ROOT(file_name(""), all, 4096LL * (ranks - 1) + 9);
  free(all);
}

// What is deleted is a name. Bytes pending for the file behind it stay wanted while it has another one, or when the name was only a link.
static void names_of_one_file(void) {
  char name[256];
  char other[256];
  snprintf(name, sizeof name, "%s", file_name(""));
  snprintf(other, sizeof other, "%s", file_name("other"));
  for (int symbolic = 0; symbolic < 2; ++symbolic) {
    for (int at_close = 0; at_close < 2; ++at_close) {
      MPI_File file = create_world("");
      if (rank == 0) {
        remove(other);
        CHECK_INT(symbolic ? symlink(name, other) : link(name, other), 0);
      }
      barrier();
      unsigned char mine[30000];
      fill_bytes(mine, sizeof mine, 9, 30000 * rank);
      if (at_close) {
        OK(MPI_File_close(&file));
        OK(MPI_File_open(MPI_COMM_WORLD, other, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
      }
      OK(MPI_File_write_at_all(file, 30000 * rank, mine, 30000, MPI_BYTE, MPI_STATUS_IGNORE));
      OK(MPI_File_close(&file));
      barrier();
      if (rank == 0 && !at_close) OK(MPI_File_delete(other, MPI_INFO_NULL));
      barrier();
      CHECK(!exists(other));
      unsigned char* all = new_bytes(30000LL * ranks);
      fill_bytes(all, 30000LL * ranks, 9, 0);
      CHECK_FILE_AT_ROOT(name, all, 30000LL * ranks);
      free(all);
    }
  }
}

const struct test_case kSizeCases[] = {
    {"sizes.size_on_one_rank", size_on_one_rank, 1},
    {"sizes.cut_and_grow", cut_and_grow, 1},
    {"sizes.made_anew", made_anew, 1},
    {"sizes.preallocated", preallocated, 1},
    {"sizes.delete_on_close", delete_on_close, 1},
    {"sizes.deleted_and_made_again", deleted_and_made_again, 1},
    {"sizes.names_of_one_file", names_of_one_file, 1},
    {NULL, NULL, 0},
};
