// File pointers: the individual one under views, after every kind of access, at the end of the file; the shared one, by which nothing is lost and
// nothing overlaps; ordered access; append and sequential modes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static MPI_Offset position_of(MPI_File file) {
  MPI_Offset position = -1;
  OK(MPI_File_get_position(file, &position));
  return position;
}
static MPI_Offset shared_position_of(MPI_File file) {
  MPI_Offset position = -1;
  OK(MPI_File_get_position_shared(file, &position));
  return position;
}

static void seeking(void) {
  MPI_File file = create_world("");
  int values[100];
  for (int i = 0; i < 100; ++i) values[i] = i;
  if (rank == 0) OK(MPI_File_write_at(file, 0, values, 100, MPI_INT, MPI_STATUS_IGNORE));
  barrier();
  // Every third int from the second on, in etypes of one int.
  MPI_Datatype third;
  MPI_Type_create_resized(MPI_INT, 0, 12, &third);
  MPI_Type_commit(&third);
  OK(MPI_File_set_view(file, 4, MPI_INT, third, "native", MPI_INFO_NULL));
  int x = -1;
  CHECK_INT(position_of(file), 0);
  OK(MPI_File_seek(file, 5, MPI_SEEK_SET));
  OK(MPI_File_read(file, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK_INT(x, 16);
  OK(MPI_File_seek(file, -3, MPI_SEEK_CUR));
  OK(MPI_File_read(file, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK_INT(x, 10);
  // 400 bytes: the ints at 1, 4, ... 97 lie inside the file, and the end falls into the gap before 100.
  OK(MPI_File_seek(file, 0, MPI_SEEK_END));
  CHECK_INT(position_of(file), 33);
  OK(MPI_File_seek(file, -1, MPI_SEEK_END));
  OK(MPI_File_read_all(file, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK_INT(x, 97);
  CHECK_CLASS(MPI_File_seek(file, -100, MPI_SEEK_CUR), MPI_ERR_ARG);
  CHECK_INT(position_of(file), 33);
  // Explicit offsets and collective calls elsewhere leave it alone.
  OK(MPI_File_read_at(file, 2, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK_INT(x, 7);
  OK(MPI_File_read_at_all(file, 3, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK_INT(x, 10);
  CHECK_INT(position_of(file), 33);
  // A new view begins at its begin.
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  CHECK_INT(position_of(file), 0);
  OK(MPI_File_seek(file, 1000, MPI_SEEK_SET));  // beyond the end: allowed
  MPI_Status status;
  OK(MPI_File_read(file, &x, 1, MPI_INT, &status));
  CHECK_ELEMENTS(&status, MPI_INT, 0);
  OK(MPI_File_close(&file));
  MPI_Type_free(&third);
}

// Reads across the end get what there is, and say so.
static void short_reads(void) {
  MPI_File file = create_world("");
  const int there[] = {1, 2, 3, 4, 5};
  if (rank == 0) OK(MPI_File_write_at(file, 0, there, 5, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  barrier();
  OK(MPI_File_sync(file));
  int got[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  const int expected[8] = {3, 4, 5, -1, -1, -1, -1, -1};
  MPI_Status status;
  int count = -1;
  OK(MPI_File_read_at(file, 8, got, 8, MPI_INT, &status));
  CHECK_BYTES(got, expected, sizeof got);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK_INT(count, 3);
  CHECK_ELEMENTS(&status, MPI_INT, 3);
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  CHECK_INT(count, MPI_UNDEFINED);
  MPI_Count large = -1;
  MPI_Get_elements_x(&status, MPI_BYTE, &large);
  CHECK_INT(large, 12);
  int cancelled = 1;
  MPI_Test_cancelled(&status, &cancelled);
  CHECK_INT(cancelled, 0);
  MPI_Datatype two;
  MPI_Type_contiguous(2, MPI_INT, &two);
  MPI_Type_commit(&two);
  OK(MPI_File_read_at_all(file, 8, got, 4, two, &status));
  CHECK_ELEMENTS(&status, two, 3);
  MPI_Get_count(&status, two, &count);
  CHECK_INT(count, MPI_UNDEFINED);
  OK(MPI_File_seek(file, 18, MPI_SEEK_SET));
  OK(MPI_File_read(file, got, 1, MPI_INT, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, 2);
  OK(MPI_File_read_at(file, 20, got, 1, MPI_INT, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, 0);
  OK(MPI_File_read_at_all(file, 1 << 20, got, 1, MPI_INT, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, 0);
  MPI_Type_free(&two);
  OK(MPI_File_close(&file));
}

// Records of different length by the shared pointer: each is found once, whole, in a gapless file.
static void write_shared(void) {
  enum { kRecords = 20, kLongest = 9 };
  MPI_File file = create_world("");
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  int total = 0;
  int my_total = 0;
  for (int i = 0; i < kRecords; ++i) {
    // length, rank, number, then numbers counting down
    int record[3 + kLongest] = {(rank + i) % kLongest, rank, i};
    for (int k = 0; k < record[0]; ++k) record[3 + k] = record[0] - k;
    OK(MPI_File_write_shared(file, record, 3 + record[0], MPI_INT, MPI_STATUS_IGNORE));
    my_total += 3 + record[0];
  }
  MPI_Allreduce(&my_total, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK_INT(position_of(file), 0);
  barrier();
  CHECK_INT(shared_position_of(file), total);
  OK(MPI_File_sync(file));
  barrier();
  OK(MPI_File_sync(file));
  int* all = new_bytes(4LL * total);
  int* seen = new_bytes(4LL * kRecords * ranks);
  MPI_Status status;
  OK(MPI_File_read_at(file, 0, all, total, MPI_INT, &status));
  CHECK_ELEMENTS(&status, MPI_INT, total);
  for (int at = 0; at < total;) {
    const int length = all[at];
    const int from = all[at + 1];
    const int number = all[at + 2];
    if (length < 0 || length >= kLongest || from < 0 || from >= ranks || number < 0 || number >= kRecords) {
      CHECK(!"a record where there is one");
      break;
    }
    seen[from * kRecords + number] += 1;
    for (int k = 0; k < length; ++k) CHECK_INT(all[at + 3 + k], length - k);
    at += 3 + length;
  }
  for (int i = 0; i < kRecords * ranks; ++i) CHECK_INT(seen[i], 1);
  // All ranks share out what is there by reading.
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  int mine = 0;
  int got = 0;
  do {
    int ten[10];
    OK(MPI_File_read_shared(file, ten, 10, MPI_INT, &status));
    MPI_Get_count(&status, MPI_INT, &mine);
    got += mine;
  } while (mine > 0);
  int sum = 0;
  MPI_Allreduce(&got, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK_INT(sum, total);
  OK(MPI_File_close(&file));
  free(all);
  free(seen);
}

static void ordered(void) {
  MPI_File file = create_world("");
  OK(MPI_File_set_view(file, 8, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
  char mine[16];
  memset(mine, 'A' + rank, sizeof mine);
  // Rank r writes r bytes, then 2: rank 0 takes part with none.
  OK(MPI_File_write_ordered(file, mine, rank, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_write_ordered_begin(file, mine, 2, MPI_CHAR));
  MPI_Status status;
  OK(MPI_File_write_ordered_end(file, mine, &status));
  CHECK_ELEMENTS(&status, MPI_CHAR, 2);
  const int first = ranks * (ranks - 1) / 2;
  CHECK_INT(shared_position_of(file), first + 2 * ranks);
  char* all = new_bytes(8 + first + 2 * ranks);
  int at = 8;
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < r; ++i) all[at++] = (char)('A' + r);
  }
  for (int i = 0; i < 2 * ranks; ++i) all[at++] = (char)('A' + i / 2);
  OK(MPI_File_seek_shared(file, first, MPI_SEEK_SET));
  char got[4] = {0};
  OK(MPI_File_read_ordered(file, got, 2, MPI_CHAR, &status));
  CHECK_INT(got[0], 'A' + rank);
  CHECK_INT(got[1], 'A' + rank);
  OK(MPI_File_read_ordered(file, got, 2, MPI_CHAR, &status));  // nothing is left
  CHECK_ELEMENTS(&status, MPI_CHAR, 0);
  OK(MPI_File_seek_shared(file, -2, MPI_SEEK_END));
  CHECK_INT(shared_position_of(file), first + 2 * ranks - 2);
  OK(MPI_File_seek_shared(file, 1, MPI_SEEK_CUR));
  CHECK_INT(shared_position_of(file), first + 2 * ranks - 1);
  // Mixed with shared access behind a barrier.
  barrier();
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_END));
  if (rank == ranks - 1) OK(MPI_File_write_shared(file, "s", 1, MPI_CHAR, MPI_STATUS_IGNORE));
  barrier();
  OK(MPI_File_write_ordered(file, "o", 1, MPI_CHAR, MPI_STATUS_IGNORE));
  CHECK_INT(shared_position_of(file), first + 3 * ranks + 1);
  CHECK_INT(position_of(file), 0);
  OK(MPI_File_close(&file));
  const int end = 8 + first + 3 * ranks + 1;
  all = realloc(all, (size_t)end);
  all[8 + first + 2 * ranks] = 's';
  memset(all + 8 + first + 2 * ranks + 1, 'o', (size_t)ranks);
  CHECK_FILE_AT_ROOT(file_name(""), all, end);
  free(all);
}

static void append(void) {
  MPI_File file = create_world("");
  OK(MPI_File_write_at_all(file, 3 * rank, "abc", 3, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  for (int turn = 0; turn < 2; ++turn) {
    file = open_world("", MPI_MODE_WRONLY | MPI_MODE_APPEND);
    const int begin = 3 * ranks * (turn + 1);
    CHECK_INT(position_of(file), begin);
    CHECK_INT(shared_position_of(file), begin);
    OK(MPI_File_seek(file, 3 * rank, MPI_SEEK_CUR));
    OK(MPI_File_write_all(file, "abc", 3, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
  }
  char* all = new_bytes(9LL * ranks);
  for (int i = 0; i < 9 * ranks; ++i) all[i] = "abc"[i % 3];
  CHECK_FILE_AT_ROOT(file_name(""), all, 9LL * ranks);
  free(all);
}

static void sequential(void) {
  if (rank == 0) remove(file_name(""));
  barrier();
  MPI_File file = open_world("", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  const char mine = (char)('a' + rank);
  CHECK_CLASS(MPI_File_write(file, &mine, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_File_write_at(file, 0, &mine, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_File_write_all(file, &mine, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL), MPI_ERR_ARG, MPI_ERR_DISP);
  OK(MPI_File_write_ordered(file, &mine, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  // The view goes on where the shared pointer is.
  OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
  OK(MPI_File_write_ordered(file, &mine, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  char all[32];
  for (int i = 0; i < 2 * ranks; ++i) all[i] = (char)('a' + i % ranks);
  CHECK_FILE_AT_ROOT(file_name(""), all, 2 * ranks);
  file = open_world("", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
  char got[2] = {0};
  OK(MPI_File_read_ordered(file, got, 2, MPI_CHAR, MPI_STATUS_IGNORE));
  CHECK_BYTES(got, all + 2 * rank, 2);
  OK(MPI_File_close(&file));
}

const struct test_case kPointerCases[] = {
    {"pointers.seeking", seeking, 1},
    {"pointers.short_reads", short_reads, 1},
    {"pointers.write_shared", write_shared, 1},
    {"pointers.ordered", ordered, 1},
    {"pointers.append", append, 1},
    {"pointers.sequential", sequential, 1},
    {NULL, NULL, 0},
};
