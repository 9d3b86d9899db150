// Nonblocking calls and split collective calls: requests that any of MPI's completion calls accept, alone and among others, statuses, positions
// that move at the start, cancelling, giving a request up; one split call at a time, ended by its own end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { kInts = 500 };

static void fill(int* values, int what) {
  for (int i = 0; i < kInts; ++i) values[i] = 1000000 * what + 1000 * rank + i;
}

static void expect_count(const MPI_Status* status, int expected) {
  int count = -1;
  MPI_Get_count(status, MPI_INT, &count);
  CHECK_INT(count, expected);
  CHECK_ELEMENTS(status, MPI_INT, expected);
  int cancelled = 1;
  MPI_Test_cancelled(status, &cancelled);
  CHECK_INT(cancelled, 0);
}

// Every start call once, into blocks of its own, and every way of waiting.
static void every_start(void) {
  enum { kCalls = 5 };
  MPI_File file = create_world("");
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  int* out[kCalls];
  for (int i = 0; i < kCalls; ++i) fill(out[i] = new_bytes(kInts * 4), i);
  MPI_Request requests[kCalls];
  const MPI_Offset mine = (MPI_Offset)rank * kInts;
  const MPI_Offset block = (MPI_Offset)ranks * kInts;
  MPI_Offset position = 0;
  OK(MPI_File_iwrite_at(file, mine, out[0], kInts, MPI_INT, &requests[0]));
  OK(MPI_File_iwrite_at_all(file, block + mine, out[1], kInts, MPI_INT, &requests[1]));
  OK(MPI_File_seek(file, 2 * block + mine, MPI_SEEK_SET));
  OK(MPI_File_iwrite(file, out[2], kInts, MPI_INT, &requests[2]));
  OK(MPI_File_get_position(file, &position));
  CHECK_INT(position, 2 * block + mine + kInts);
  OK(MPI_File_seek(file, 3 * block + mine, MPI_SEEK_SET));
  OK(MPI_File_iwrite_all(file, out[3], kInts, MPI_INT, &requests[3]));
  OK(MPI_File_get_position(file, &position));
  CHECK_INT(position, 3 * block + mine + kInts);
  MPI_Status statuses[kCalls];
  OK(MPI_Waitall(kCalls - 1, requests, statuses));
  for (int i = 0; i < kCalls - 1; ++i) {
    CHECK(requests[i] == MPI_REQUEST_NULL);
    expect_count(&statuses[i], kInts);
  }
  OK(MPI_File_seek_shared(file, 4 * block, MPI_SEEK_SET));
  OK(MPI_File_iwrite_shared(file, out[4], kInts, MPI_INT, &requests[4]));
  OK(MPI_Wait(&requests[4], &statuses[4]));
  expect_count(&statuses[4], kInts);
  OK(MPI_File_sync(file));
  barrier();
  OK(MPI_File_sync(file));

  int* got[kCalls];
  for (int i = 0; i < kCalls; ++i) got[i] = new_bytes(kInts * 4);
  OK(MPI_File_iread_at(file, mine, got[0], kInts, MPI_INT, &requests[0]));
  OK(MPI_File_iread_at_all(file, block + mine, got[1], kInts, MPI_INT, &requests[1]));
  OK(MPI_File_seek(file, 2 * block + mine, MPI_SEEK_SET));
  OK(MPI_File_iread(file, got[2], kInts, MPI_INT, &requests[2]));
  OK(MPI_File_seek(file, 3 * block + mine, MPI_SEEK_SET));
  OK(MPI_File_iread_all(file, got[3], kInts, MPI_INT, &requests[3]));
  int open = kCalls - 1;
  while (open > 0) {
    int index = -1;
    MPI_Status status;
    OK(MPI_Waitany(kCalls - 1, requests, &index, &status));
    expect_count(&status, kInts);
    --open;
  }
  OK(MPI_File_seek_shared(file, 4 * block, MPI_SEEK_SET));
  OK(MPI_File_iread_shared(file, got[4], kInts, MPI_INT, &requests[4]));
  OK(MPI_Wait(&requests[4], MPI_STATUS_IGNORE));
  for (int i = 0; i < kCalls - 1; ++i) CHECK_BYTES(got[i], out[i], kInts * 4);
  // Somebody's whole block.
  CHECK_INT(got[4][kInts - 1] - got[4][0], kInts - 1);
  CHECK_INT(got[4][0] / 1000000, 4);
  OK(MPI_File_close(&file));
  for (int i = 0; i < kCalls; ++i) {
    free(out[i]);
    free(got[i]);
  }
}

// Together with messages, by MPI_Test and its kin; at the end of the file; given up; cancelled.
static void among_others(void) {
  MPI_File file = create_world("");
  int out[kInts];
  int got[kInts] = {0};
  fill(out, 7);
  const MPI_Offset mine = (MPI_Offset)rank * kInts * 4;
  int token = rank;
  int from = -1;
  MPI_Request requests[4];
  OK(MPI_Irecv(&from, 1, MPI_INT, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_File_iwrite_at(file, mine, out, kInts, MPI_INT, &requests[1]));
  OK(MPI_Isend(&token, 1, MPI_INT, (rank + 1) % ranks, 1, MPI_COMM_WORLD, &requests[2]));
  requests[3] = MPI_REQUEST_NULL;
  MPI_Status statuses[4];
  OK(MPI_Waitall(4, requests, statuses));
  CHECK_INT(from, (rank + ranks - 1) % ranks);
  expect_count(&statuses[1], kInts);

  MPI_Request request;
  OK(MPI_File_iread_at(file, mine, got, kInts, MPI_INT, &request));
  int done = 0;
  MPI_Status status;
  while (!done) OK(MPI_Request_get_status(request, &done, &status));
  expect_count(&status, kInts);
  CHECK(request != MPI_REQUEST_NULL);
  done = 0;
  while (!done) OK(MPI_Test(&request, &done, &status));
  CHECK(request == MPI_REQUEST_NULL);
  expect_count(&status, kInts);
  CHECK_BYTES(got, out, sizeof got);

  // Nobody waits for this one.
  OK(MPI_File_iwrite_at(file, mine, out, kInts, MPI_INT, &request));
  OK(MPI_Request_free(&request));
  CHECK(request == MPI_REQUEST_NULL);
  // Too late to be cancelled, or refused: it is carried out.
  OK(MPI_File_iwrite_at(file, mine, out, kInts, MPI_INT, &request));
  (void)MPI_Cancel(&request);
  OK(MPI_Wait(&request, &status));
  expect_count(&status, kInts);
  barrier();
  OK(MPI_File_iread_at(file, (MPI_Offset)ranks * kInts * 4 - 8, got, kInts, MPI_INT, &request));
  int index = -1;
  int indices[1];
  OK(MPI_Waitsome(1, &request, &index, indices, &status));
  CHECK_INT(index, 1);
  expect_count(&status, 2);
  OK(MPI_File_iwrite_at(file, 0, NULL, 0, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  expect_count(&status, 0);
  OK(MPI_File_close(&file));
}

// A nonblocking collective call does not wait for the others (MPI-4.1 §14.4.5): rank 0 begins and then lets them know.
static void collective_start_is_local(void) {
  MPI_File file = create_world("");
  int x = 40 + rank;
  MPI_Request request;
  int go = 0;
  if (rank != 0) MPI_Recv(&go, 1, MPI_INT, rank - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  OK(MPI_File_iwrite_at_all(file, 4 * rank, &x, 1, MPI_INT, &request));
  if (rank + 1 < ranks) MPI_Send(&go, 1, MPI_INT, rank + 1, 9, MPI_COMM_WORLD);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  int all[16];
  for (int i = 0; i < ranks; ++i) all[i] = 40 + i;
  CHECK_FILE_AT_ROOT(file_name(""), all, 4 * ranks);
}

static void split_calls(void) {
  MPI_File file = create_world("");
  int out[kInts];
  int got[kInts] = {0};
  fill(out, 3);
  const MPI_Offset mine = (MPI_Offset)rank * kInts * 4;
  MPI_Status status;
  OK(MPI_File_write_at_all_begin(file, mine, out, kInts, MPI_INT));
  OK(MPI_File_write_at_all_end(file, out, &status));
  expect_count(&status, kInts);
  OK(MPI_File_read_at_all_begin(file, mine, got, kInts, MPI_INT));
  OK(MPI_File_read_at_all_end(file, got, &status));
  expect_count(&status, kInts);
  CHECK_BYTES(got, out, sizeof got);
  OK(MPI_File_seek(file, mine, MPI_SEEK_SET));
  fill(out, 4);
  OK(MPI_File_write_all_begin(file, out, kInts, MPI_INT));
  OK(MPI_File_write_all_end(file, out, MPI_STATUS_IGNORE));
  MPI_Offset position = 0;
  OK(MPI_File_get_position(file, &position));
  CHECK_INT(position, mine + kInts * 4);
  OK(MPI_File_seek(file, mine, MPI_SEEK_SET));
  OK(MPI_File_read_all_begin(file, got, kInts, MPI_INT));
  // Other calls may come in between (MPI-4.1 §14.4.7).
  MPI_Offset size = 0;
  OK(MPI_File_get_size(file, &size));
  OK(MPI_File_read_all_end(file, got, &status));
  CHECK_BYTES(got, out, sizeof got);
  OK(MPI_File_close(&file));
  CHECK_INT(size, (MPI_Offset)ranks * kInts * 4);
}

static void split_mistakes(void) {
  MPI_File file = create_world("");
  int x = rank;
  int y = 0;
  MPI_Status status;
  CHECK_CLASS(MPI_File_write_all_end(file, &x, &status), MPI_ERR_IO, MPI_ERR_OTHER, MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_File_read_ordered_end(file, &x, &status), MPI_ERR_IO, MPI_ERR_OTHER, MPI_ERR_REQUEST);
  OK(MPI_File_write_at_all_begin(file, 4 * rank, &x, 1, MPI_INT));
  CHECK_CLASS(MPI_File_read_at_all_begin(file, 0, &y, 1, MPI_INT), MPI_ERR_IO, MPI_ERR_OTHER, MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_File_write_ordered_begin(file, &y, 1, MPI_INT), MPI_ERR_IO, MPI_ERR_OTHER, MPI_ERR_REQUEST);
  OK(MPI_File_write_at_all_end(file, &x, &status));
  expect_count(&status, 1);
  CHECK_CLASS(MPI_File_write_at_all_end(file, &x, &status), MPI_ERR_IO, MPI_ERR_OTHER, MPI_ERR_REQUEST);
  // A begin that failed needs no end.
  CHECK_CLASS(MPI_File_write_all_begin(file, &x, -1, MPI_INT), MPI_ERR_COUNT, MPI_ERR_ARG);
  OK(MPI_File_read_at_all_begin(file, 4 * rank, &y, 1, MPI_INT));
  OK(MPI_File_read_at_all_end(file, &y, &status));
  CHECK_INT(y, rank);
  OK(MPI_File_close(&file));
}

const struct test_case kNonblockingCases[] = {
    {"nonblocking.every_start", every_start, 1},
    {"nonblocking.among_others", among_others, 1},
    {"nonblocking.collective_start_is_local", collective_start_is_local, 2},
    {"nonblocking.split_calls", split_calls, 1},
    {"nonblocking.split_mistakes", split_mistakes, 1},
    {NULL, NULL, 0},
};
