// Errors have the class that MPI-4.1 §14.7 gives them, or that the MPIs give them where the text leaves it open; every rank of a collective
// call gets one, also when only one rank's argument was wrong, and the file works afterwards.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"

static void open_fails(const char* name, int amode, int class, int other) {
  MPI_File file;
  memset(&file, 0x5a, sizeof file);
  CHECK_CLASS(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file), class, other);
}

static void open_missing(void) {
  const int modes[] = {MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_MODE_RDWR, MPI_MODE_RDWR | MPI_MODE_APPEND};
  for (int i = 0; i < 4; ++i) open_fails(file_name("none"), modes[i], MPI_ERR_NO_SUCH_FILE, MPI_ERR_NO_SUCH_FILE);
  open_fails("no-such-folder/file", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_ERR_NO_SUCH_FILE, MPI_ERR_NO_SUCH_FILE);
  // Alone too: the others do nothing.
  MPI_File file;
  CHECK_CLASS(MPI_File_open(MPI_COMM_SELF, file_name("none"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
              MPI_ERR_NO_SUCH_FILE);
}

static void open_bad_names(void) {
  if (rank == 0) mkdir(file_name("folder"), 0777);
  barrier();
  open_fails(file_name("folder"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_ERR_BAD_FILE, MPI_ERR_FILE_EXISTS);
  open_fails(file_name("folder"), MPI_MODE_RDONLY, MPI_ERR_BAD_FILE, MPI_ERR_OTHER);
  char name[2000];
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = 0;
  open_fails(name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_ERR_BAD_FILE, MPI_ERR_ARG);
  // A file where a folder should be.
  MPI_File file = create_world("plain");
  OK(MPI_File_close(&file));
  open_fails(file_name("plain/x"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_ERR_BAD_FILE, MPI_ERR_OTHER);
}

static void create_exclusive(void) {
  MPI_File file = create_world("");
  OK(MPI_File_close(&file));
  barrier();
  open_fails(file_name(""), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_ERR_FILE_EXISTS, MPI_ERR_FILE_EXISTS);
  barrier();
  if (rank == 0) remove(file_name(""));
  barrier();
  file = open_world("", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);  // by all ranks: only one creates
  CHECK(file != MPI_FILE_NULL);
  OK(MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL);
}

static void bad_amodes(void) {
  MPI_File file = create_world("");
  OK(MPI_File_close(&file));
  const int modes[] = {
      0,
      MPI_MODE_CREATE,
      MPI_MODE_RDONLY | MPI_MODE_WRONLY,
      MPI_MODE_RDONLY | MPI_MODE_RDWR,
      MPI_MODE_WRONLY | MPI_MODE_RDWR,
      MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR,
      MPI_MODE_RDONLY | MPI_MODE_CREATE,
      MPI_MODE_RDONLY | MPI_MODE_EXCL,
      MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL,
  };
  for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i)
    open_fails(file_name(""), modes[i], MPI_ERR_AMODE, MPI_ERR_AMODE);
  CHECK_FILE_AT_ROOT(file_name(""), "", 0);
}

static void different_amodes(void) {
  MPI_File file = create_world("");
  OK(MPI_File_close(&file));
  open_fails(file_name(""), rank == ranks - 1 ? MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_ERR_NOT_SAME, MPI_ERR_NOT_SAME);
  open_fails(file_name(""), rank == ranks - 1 ? MPI_MODE_CREATE | MPI_MODE_RDONLY : MPI_MODE_RDONLY, MPI_ERR_AMODE,
             MPI_ERR_NOT_SAME);
}

static void delete_missing(void) {
  CHECK_CLASS(MPI_File_delete(file_name("none"), MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  // Also when there was one.
  MPI_File file = create_world("");
  OK(MPI_File_write_at(file, rank, "x", 1, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  barrier();
  if (rank == 0) OK(MPI_File_delete(file_name(""), MPI_INFO_NULL));
  barrier();
  CHECK_CLASS(MPI_File_delete(file_name(""), MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  open_fails(file_name(""), MPI_MODE_RDONLY, MPI_ERR_NO_SUCH_FILE, MPI_ERR_NO_SUCH_FILE);
}

static void read_only_files(void) {
  MPI_File file = create_world("");
  OK(MPI_File_write_at_all(file, rank, "r", 1, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  file = open_world("", MPI_MODE_RDONLY);
  char c = 'w';
  CHECK_CLASS(MPI_File_write_at(file, rank, &c, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY, MPI_ERR_ACCESS);
  CHECK_CLASS(MPI_File_write(file, &c, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY, MPI_ERR_ACCESS);
  CHECK_CLASS(MPI_File_write_all(file, &c, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY, MPI_ERR_ACCESS);
  CHECK_CLASS(MPI_File_write_shared(file, &c, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY, MPI_ERR_ACCESS);
  MPI_Request request = MPI_REQUEST_NULL;
  CHECK_CLASS(MPI_File_iwrite_at(file, rank, &c, 1, MPI_CHAR, &request), MPI_ERR_READ_ONLY, MPI_ERR_ACCESS);
  CHECK_CLASS(MPI_File_set_size(file, 0), MPI_ERR_READ_ONLY, MPI_ERR_ACCESS);
  CHECK_CLASS(MPI_File_preallocate(file, 10), MPI_ERR_READ_ONLY, MPI_ERR_ACCESS);
  OK(MPI_File_read_at_all(file, rank, &c, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  CHECK_INT(c, 'r');
  OK(MPI_File_close(&file));
}

static void write_only_files(void) {
  if (rank == 0) remove(file_name(""));
  barrier();
  MPI_File file = open_world("", MPI_MODE_CREATE | MPI_MODE_WRONLY);
  char c = 'w';
  OK(MPI_File_write_at_all(file, rank, &c, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  CHECK_CLASS(MPI_File_read_at(file, 0, &c, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
  CHECK_CLASS(MPI_File_read_at_all(file, 0, &c, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
  CHECK_CLASS(MPI_File_read_ordered(file, &c, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
  CHECK_INT(c, 'w');
  OK(MPI_File_close(&file));
  char all[16];
  memset(all, 'w', sizeof all);
  CHECK_FILE_AT_ROOT(file_name(""), all, ranks);
}

static void bad_arguments(void) {
  MPI_File file = create_world("");
  int x = 0;
  CHECK_CLASS(MPI_File_write_at(file, 0, &x, -1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_COUNT, MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_read(file, &x, -1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_COUNT, MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_write_at(file, -1, &x, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_read_at_all(file, -8, &x, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_write_at(file, 0, &x, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_seek_shared(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_set_size(file, -1), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_preallocate(file, -1), MPI_ERR_ARG);
  MPI_Offset offset = 7;
  CHECK_CLASS(MPI_File_get_byte_offset(file, -1, &offset), MPI_ERR_ARG);
  OK(MPI_File_get_size(file, &offset));
  CHECK_INT(offset, 0);
  OK(MPI_File_close(&file));
}

static void bad_views(void) {
  MPI_File file = create_world("");
  MPI_Datatype negative;
  MPI_Datatype odd;
  const int lengths[] = {1};
  const MPI_Aint displacements[] = {-4};
  MPI_Type_create_hindexed(1, lengths, displacements, MPI_INT, &negative);
  MPI_Type_commit(&negative);
  MPI_Type_contiguous(3, MPI_BYTE, &odd);
  MPI_Type_commit(&odd);
  CHECK_CLASS(MPI_File_set_view(file, -1, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_ERR_ARG, MPI_ERR_DISP);
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "no such thing", MPI_INFO_NULL),
              MPI_ERR_UNSUPPORTED_DATAREP);
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_DATATYPE_NULL, MPI_BYTE, "native", MPI_INFO_NULL), MPI_ERR_TYPE,
              MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, odd, "native", MPI_INFO_NULL), MPI_ERR_ARG, MPI_ERR_TYPE, MPI_ERR_IO);
  CHECK_CLASS(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL),
              MPI_ERR_ARG, MPI_ERR_DISP);
  // One rank's fault is everybody's failure, and nobody's view changes.
  OK(MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  CHECK_CLASS(MPI_File_set_view(file, rank == ranks - 1 ? -1 : 8, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL),
              MPI_ERR_ARG, MPI_ERR_DISP);
  MPI_Offset offset = 0;
  OK(MPI_File_get_byte_offset(file, 2, &offset));
  CHECK_INT(offset, 12);
  OK(MPI_File_close(&file));
  MPI_Type_free(&negative);
  MPI_Type_free(&odd);
}

// A file type that goes backwards (MPI-4.1 §14.3.1: displacements must be non-negative and, to be written through, ascending).
static void descending_view(void) {
  MPI_File file = create_world("");
  MPI_Datatype backwards;
  const int lengths[] = {1, 1};
  const int displacements[] = {4, 0};
  MPI_Type_indexed(2, lengths, displacements, MPI_BYTE, &backwards);
  MPI_Type_commit(&backwards);
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_BYTE, backwards, "native", MPI_INFO_NULL), MPI_ERR_ARG, MPI_ERR_TYPE,
              MPI_ERR_IO);
  OK(MPI_File_close(&file));
  MPI_Type_free(&backwards);
}

// Whole etypes only.
static void part_of_an_etype(void) {
  MPI_File file = create_world("");
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  char text[8] = "abcdefg";
  CHECK_CLASS(MPI_File_write_at(file, 0, text, 3, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_IO, MPI_ERR_ARG, MPI_ERR_TYPE);
  CHECK_CLASS(MPI_File_write_at_all(file, 0, text, 5, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_IO, MPI_ERR_ARG,
              MPI_ERR_TYPE);
  MPI_Offset size = -1;
  OK(MPI_File_get_size(file, &size));
  CHECK_INT(size, 0);
  OK(MPI_File_close(&file));
}

static void one_bad_rank(void) {
  enum { kEach = 100 };
  MPI_File file = create_world("");
  char mine[kEach];
  memset(mine, 'a' + rank, sizeof mine);
  const int bad = rank == ranks / 2;
  const MPI_Offset at = (MPI_Offset)rank * kEach;
  CHECK_CLASS(MPI_File_write_at_all(file, at, mine, bad ? -1 : kEach, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_File_write_at_all(file, bad ? -1 : at, mine, kEach, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_write_all(file, mine, kEach, bad ? MPI_DATATYPE_NULL : MPI_CHAR, MPI_STATUS_IGNORE),
              MPI_ERR_TYPE);
  CHECK_CLASS(MPI_File_write_ordered(file, mine, bad ? -1 : kEach, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_File_write_at_all_begin(file, at, mine, bad ? -1 : kEach, MPI_CHAR), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_File_read_at_all(file, at, mine, bad ? -1 : kEach, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
  MPI_Offset position = -1;
  OK(MPI_File_get_position(file, &position));
  CHECK_INT(position, 0);
  OK(MPI_File_get_position_shared(file, &position));
  CHECK_INT(position, 0);
  // And it still works.
  memset(mine, 'a' + rank, sizeof mine);
  OK(MPI_File_write_at_all(file, at, mine, kEach, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  char* all = new_bytes((long long)kEach * ranks);
  for (int i = 0; i < kEach * ranks; ++i) all[i] = (char)('a' + i / kEach);
  CHECK_FILE_AT_ROOT(file_name(""), all, (long long)kEach * ranks);
  free(all);
}

static void different_values(void) {
  MPI_File file = create_world("");
  OK(MPI_File_write_at_all(file, rank, "x", 1, MPI_CHAR, MPI_STATUS_IGNORE));
  CHECK_CLASS(MPI_File_set_size(file, rank == 0 ? 100 : 200), MPI_ERR_NOT_SAME, MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_preallocate(file, rank == 0 ? 100 : 200), MPI_ERR_NOT_SAME, MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_set_atomicity(file, rank == 0), MPI_ERR_NOT_SAME, MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_seek_shared(file, rank, MPI_SEEK_SET), MPI_ERR_NOT_SAME, MPI_ERR_ARG);
  int flag = 7;
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK_INT(flag, 0);
  MPI_Offset size = 0;
  OK(MPI_File_get_size(file, &size));
  CHECK_INT(size, ranks);
  OK(MPI_File_close(&file));
}

// A view whose etype differs in extent between the ranks is erroneous; whatever the answer, it is one for all.
static void different_etypes(void) {
  MPI_File file = create_world("");
  const MPI_Datatype etype = rank == 0 ? MPI_DOUBLE : MPI_INT;
  const int error = MPI_File_set_view(file, 0, etype, etype, "native", MPI_INFO_NULL);
  int class = 0;
  int lowest = 0;
  int highest = 0;
  MPI_Error_class(error, &class);
  MPI_Allreduce(&class, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&class, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  CHECK_INT(lowest, highest);
  OK(MPI_File_close(&file));
}

const struct test_case kErrorCases[] = {
    {"errors.open_missing", open_missing, 1},         {"errors.open_bad_names", open_bad_names, 1},
    {"errors.create_exclusive", create_exclusive, 1}, {"errors.bad_amodes", bad_amodes, 1},
    {"errors.different_amodes", different_amodes, 2}, {"errors.delete_missing", delete_missing, 1},
    {"errors.read_only_files", read_only_files, 1},   {"errors.write_only_files", write_only_files, 1},
    {"errors.bad_arguments", bad_arguments, 1},       {"errors.bad_views", bad_views, 1},
    {"errors.descending_view", descending_view, 1},   {"errors.part_of_an_etype", part_of_an_etype, 1},
    {"errors.one_bad_rank", one_bad_rank, 1},         {"errors.different_values", different_values, 2},
    {"errors.different_etypes", different_etypes, 2}, {NULL, NULL, 0},
};
