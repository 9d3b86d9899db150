// What a handle is: Fortran's number for it, group, access mode, hints; the PMPI names and the large-count forms; files that Spillway does not
// manage (run.py: names that end in '#') side by side with managed ones; data representations.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void fortran_numbers(void) {
  CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
  MPI_File file = create_world("");
  MPI_File other = create_world("other");
  const MPI_Fint number = MPI_File_c2f(file);
  CHECK(MPI_File_c2f(file) == number);
  CHECK(MPI_File_c2f(other) != number);
  CHECK(MPI_File_f2c(number) == file);
  CHECK(MPI_File_f2c(MPI_File_c2f(other)) == other);
  MPI_File again = MPI_File_f2c(number);
  OK(MPI_File_write_at_all(again, rank, "f", 1, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&again));
  CHECK(again == MPI_FILE_NULL);
  file = create_world("third");
  CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file);
  CHECK(MPI_File_f2c(MPI_File_c2f(other)) == other);
  OK(MPI_File_close(&file));
  OK(MPI_File_close(&other));
}

static void group_and_amode(void) {
  const int amode = MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_UNIQUE_OPEN;
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  MPI_File file;
  OK(MPI_File_open(reversed, file_name(""), amode, MPI_INFO_NULL, &file));
  int got = 0;
  OK(MPI_File_get_amode(file, &got));
  CHECK_INT(got, amode);
  MPI_Group expected;
  MPI_Comm_group(reversed, &expected);
  for (int turn = 0; turn < 2; ++turn) {  // each is the program's to free
    MPI_Group group;
    OK(MPI_File_get_group(file, &group));
    int result = MPI_UNEQUAL;
    MPI_Group_compare(group, expected, &result);
    CHECK_INT(result, MPI_IDENT);
    OK(MPI_Group_free(&group));
    CHECK(group == MPI_GROUP_NULL);
  }
  MPI_Group_free(&expected);
  MPI_Comm_free(&reversed);
  OK(MPI_File_close(&file));
}

static int has_hint(MPI_Info info, const char* key, char* value) {
  int found = 0;
  MPI_Info_get(info, key, 200, value, &found);
  return found;
}

// Hints are advice: unknown ones and bad values are no errors, and what is in force can be asked for and handed on.
static void hints(void) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_size", "1048576");
  MPI_Info_set(info, "cb_nodes", "many");
  MPI_Info_set(info, "romio_cb_write", "perhaps");
  MPI_Info_set(info, "no_such_hint_anywhere", "1");
  MPI_File file = create_world("");
  OK(MPI_File_close(&file));
  OK(MPI_File_open(MPI_COMM_WORLD, file_name(""), MPI_MODE_RDWR, info, &file));
  MPI_Info used;
  char value[256] = "";
  OK(MPI_File_get_info(file, &used));
  CHECK(used != MPI_INFO_NULL);
  if (has_hint(used, "cb_buffer_size", value)) CHECK_TEXT(value, "1048576");
  if (has_hint(used, "cb_nodes", value)) CHECK(strcmp(value, "many") != 0);
  if (has_hint(used, "romio_cb_write", value)) CHECK(strcmp(value, "perhaps") != 0);
  // HDF5 takes anything but "true" here as: what I write is not seen.
  if (has_hint(used, "romio_visibility_immediate", value)) CHECK_TEXT(value, "true");
  OK(MPI_File_set_info(file, used));
  OK(MPI_File_set_info(file, MPI_INFO_NULL));
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", used));
  MPI_Info_free(&used);
  OK(MPI_File_write_at_all(file, rank, "h", 1, MPI_CHAR, MPI_STATUS_IGNORE));
  // Different values on the ranks, as far as hints allow that.
  MPI_Info_set(info, "access_style", rank == 0 ? "write_once" : "random");
  (void)MPI_File_set_info(file, info);
  OK(MPI_File_close(&file));
  MPI_Info_free(&info);
  CHECK_FILE_AT_ROOT(file_name(""), "hhhhhhhhhhhhhhhh", ranks);
}

// Tools sit between: the program's calls by the profiling names reach the same file.
static void profiling_names(void) {
  MPI_File file;
  OK(PMPI_File_open(MPI_COMM_WORLD, file_name(""), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  MPI_Status status;
  int x = 7 * rank;
  int got = -1;
  OK(PMPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(file, rank, &x, 1, MPI_INT, &status));
  OK(PMPI_File_read_at(file, rank, &got, 1, MPI_INT, &status));
  CHECK_INT(got, x);
  MPI_Request request;
  OK(PMPI_File_iwrite_at(file, ranks + rank, &x, 1, MPI_INT, &request));
  OK(PMPI_Wait(&request, &status));
  OK(PMPI_File_sync(file));
  MPI_Offset size = 0;
  barrier();
  OK(PMPI_File_get_size(file, &size));
  CHECK_INT(size, 8 * ranks);
  const MPI_Fint number = PMPI_File_c2f(file);
  CHECK(PMPI_File_f2c(number) == file);
  OK(PMPI_File_close(&file));
  barrier();
  if (rank == 0) OK(PMPI_File_delete(file_name(""), MPI_INFO_NULL));
}

static void managed_and_not(void) {
  MPI_File here;
  MPI_File there;
  const int amode = MPI_MODE_CREATE | MPI_MODE_RDWR;
  OK(MPI_File_open(MPI_COMM_WORLD, file_name("managed"), amode, MPI_INFO_NULL, &here));
  OK(MPI_File_open(MPI_COMM_WORLD, file_name("unmanaged#"), amode, MPI_INFO_NULL, &there));
  CHECK(MPI_File_f2c(MPI_File_c2f(here)) == here);
  CHECK(MPI_File_f2c(MPI_File_c2f(there)) == there);
  CHECK(MPI_File_c2f(here) != MPI_File_c2f(there));
  int out[2] = {rank, -rank};
  int got[2] = {0};
  MPI_File both[] = {here, there};
  MPI_Request requests[2];
  for (int i = 0; i < 2; ++i) {
    MPI_Errhandler handler;
    OK(MPI_File_get_errhandler(both[i], &handler));
    CHECK(handler == MPI_ERRORS_RETURN);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_File_set_view(both[i], 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(both[i], 2 * rank, out, 2, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_iread_at(both[i], 2 * rank + i, &got[i], 1, MPI_INT, &requests[i]));
  }
  MPI_Status statuses[2];
  OK(MPI_Waitall(2, requests, statuses));
  CHECK_INT(got[0], rank);
  CHECK_INT(got[1], -rank);
  for (int i = 0; i < 2; ++i) CHECK_ELEMENTS(&statuses[i], MPI_INT, 1);
  for (int i = 0; i < 2; ++i) {
    OK(MPI_File_write_all_begin(both[i], out, 0, MPI_INT));
    OK(MPI_File_write_all_end(both[i], out, MPI_STATUS_IGNORE));
    MPI_Aint extent = 0;
    OK(MPI_File_get_type_extent(both[i], MPI_INT, &extent));
    CHECK_INT(extent, 4);
    CHECK_CLASS(MPI_File_seek(both[i], -1, MPI_SEEK_SET), MPI_ERR_ARG, MPI_ERR_OTHER);
  }
  OK(MPI_File_close(&there));
  OK(MPI_File_close(&here));
  barrier();
  int all[32];
  for (int i = 0; i < 2 * ranks; ++i) all[i] = i % 2 ? -(i / 2) : i / 2;
  CHECK_FILE(file_name("managed"), all, 8 * ranks);
  CHECK_FILE(file_name("unmanaged#"), all, 8 * ranks);
  barrier();
  if (rank == 0) OK(MPI_File_delete(file_name("unmanaged#"), MPI_INFO_NULL));
}

// A null or foreign handle is an error, not a crash.
static void bad_handles(void) {
  MPI_Offset size = 0;
  MPI_File null = MPI_FILE_NULL;
  CHECK_CLASS(MPI_File_get_size(MPI_FILE_NULL, &size), MPI_ERR_FILE);
  CHECK_CLASS(MPI_File_close(&null), MPI_ERR_FILE);
  MPI_File file = create_world("");
  MPI_File closed = file;
  OK(MPI_File_close(&file));
  (void)closed;
  CHECK_CLASS(MPI_File_read(file, &size, 1, MPI_OFFSET, MPI_STATUS_IGNORE), MPI_ERR_FILE);
}

static void external32(void) {
  MPI_File file = create_world("");
  OK(MPI_File_set_view(file, 8 * rank, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
  char datarep[MPI_MAX_DATAREP_STRING] = "";
  MPI_Offset displacement = 0;
  MPI_Datatype etype;
  MPI_Datatype type;
  OK(MPI_File_get_view(file, &displacement, &etype, &type, datarep));
  CHECK_TEXT(datarep, "external32");
  const int mine[2] = {0x01020304 + rank, -2};
  OK(MPI_File_write_at_all(file, 0, mine, 2, MPI_INT, MPI_STATUS_IGNORE));
  int got[2] = {0};
  MPI_Status status;
  OK(MPI_File_read_at_all(file, 0, got, 2, MPI_INT, &status));
  CHECK_BYTES(got, mine, sizeof got);
  CHECK_ELEMENTS(&status, MPI_INT, 2);
  MPI_Aint extent = 0;
  OK(MPI_File_get_type_extent(file, MPI_DOUBLE, &extent));
  CHECK_INT(extent, 8);
  OK(MPI_File_close(&file));
  unsigned char* all = new_bytes(8LL * ranks);
  for (int r = 0; r < ranks; ++r) {
    const unsigned char one[8] = {1, 2, 3, (unsigned char)(4 + r), 0xff, 0xff, 0xff, 0xfe};
    memcpy(all + 8 * r, one, 8);
  }
  CHECK_FILE_AT_ROOT(file_name(""), all, 8LL * ranks);
  free(all);
}

// The end of the file in the midst of an element of the memory's type: what there is is converted.
static void external32_short_read(void) {
  MPI_File file = create_world("");
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
  const int there[3] = {11, 12, 13};
  if (rank == 0) OK(MPI_File_write_at(file, 0, there, 3, MPI_INT, MPI_STATUS_IGNORE));
  barrier();
  MPI_Datatype pair;
  MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  int got[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  const int expected[8] = {11, -1, 12, 13, -1, -1, -1, -1};
  MPI_Status status;
  OK(MPI_File_read_at(file, 0, got, 2, pair, &status));
  CHECK_ELEMENTS(&status, MPI_INT, 3);
  CHECK_BYTES(got, expected, sizeof got);
  OK(MPI_File_close(&file));
  MPI_Type_free(&pair);
}

static void internal_datarep(void) {
  MPI_File file = create_world("");
  OK(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "internal", MPI_INFO_NULL));
  const double x = 3.5 * rank;
  double got = -1;
  OK(MPI_File_write_at_all(file, rank, &x, 1, MPI_DOUBLE, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at_all(file, rank, &got, 1, MPI_DOUBLE, MPI_STATUS_IGNORE));
  CHECK(got == x);
  OK(MPI_File_close(&file));
}

static int extent_function(MPI_Datatype type, MPI_Aint* extent, void* state) {
  (void)type;
  (void)state;
  *extent = 4;
  return MPI_SUCCESS;
}
// Either it can be used, or set_view says that it cannot: on every rank, and the file goes on as before.
static void own_datarep(void) {
  const int known =
      MPI_Register_datarep("conformance", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_function, NULL);
  MPI_File file = create_world("");
  const int error = MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "conformance", MPI_INFO_NULL);
  if (error != MPI_SUCCESS || known != MPI_SUCCESS) CHECK_CLASS(error, MPI_ERR_UNSUPPORTED_DATAREP);
  OK(MPI_File_write_at_all(file, 4 * rank, "good", 4, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
}

#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
// The large-count forms of everything, among them those of calls by pointer.
static void large_count_forms(void) {
  MPI_File file = create_world("");
  const MPI_Count one = 1;
  int x = 3 * rank + 1;
  int got = 0;
  MPI_Status status;
  MPI_Request request;
  MPI_Count extent = 0;
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_get_type_extent_c(file, MPI_INT, &extent));
  CHECK_INT(extent, 4);
  OK(MPI_File_write_at_all_c(file, rank, &x, one, MPI_INT, &status));
  OK(MPI_File_read_at_all_c(file, rank, &got, one, MPI_INT, &status));
  CHECK_INT(got, x);
  OK(MPI_File_iwrite_at_c(file, ranks + rank, &x, one, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  OK(MPI_File_seek(file, ranks + rank, MPI_SEEK_SET));
  got = 0;
  OK(MPI_File_read_c(file, &got, one, MPI_INT, &status));
  CHECK_INT(got, x);
  OK(MPI_File_seek_shared(file, 2 * ranks, MPI_SEEK_SET));
  OK(MPI_File_write_ordered_c(file, &x, one, MPI_INT, &status));
  OK(MPI_File_write_ordered_begin_c(file, &x, one, MPI_INT));
  OK(MPI_File_write_ordered_end(file, &x, &status));
  OK(MPI_File_write_shared_c(file, &x, one, MPI_INT, &status));
  barrier();
  MPI_Offset size = 0;
  OK(MPI_File_get_size(file, &size));
  CHECK_INT(size, 20 * ranks);
  CHECK_CLASS(MPI_File_write_at_c(file, 0, &x, -1, MPI_INT, &status), MPI_ERR_COUNT);
  OK(MPI_File_close(&file));
}
#endif

const struct test_case kHandleCases[] = {
    {"handles.fortran_numbers", fortran_numbers, 1},
    {"handles.group_and_amode", group_and_amode, 1},
    {"handles.hints", hints, 1},
    {"handles.profiling_names", profiling_names, 1},
    {"handles.managed_and_not", managed_and_not, 1},
    {"handles.bad_handles", bad_handles, 1},
    {"handles.external32", external32, 1},
    {"handles.external32_short_read", external32_short_read, 1},
    {"handles.internal_datarep", internal_datarep, 1},
    {"handles.own_datarep", own_datarep, 1},
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
    {"handles.large_count_forms", large_count_forms, 1},
#endif
    {NULL, NULL, 0},
};
