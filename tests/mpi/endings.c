// Programs that end in unusual ways lose nothing: the bytes are in the file once the job is gone (run.py looks). What is written: each rank R its
// kBytes bytes of value 'a' + R at R * kBytes, to endings.out.
//
//   open       the file is never closed, and MPI is finalized
//   exit       exit() without MPI_Finalize, the file open
//   return     the file is closed; main returns without MPI_Finalize
//   session    no MPI_Init: everything in a session (MPI-4.1 §11.3), which is finalized
//   nonblocking  requests that were given up, and a file that is closed
//   double     MPI_Finalize after files were closed by an attribute of MPI_COMM_SELF that the program itself has set
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBytes = 1 << 20 };

static int failures;
static void expect(int error, const char* what) {
  if (error == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  fprintf(stderr, "endings: %s: expected success, got %s\n", what, text);
  ++failures;
}
#define OK(call) expect(call, #call)

static char* mine;

static MPI_File write_file(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  mine = malloc(kBytes);
  memset(mine, 'a' + rank, kBytes);
  MPI_File file;
  OK(MPI_File_open(comm, "endings.out", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  // Half of it by a collective call, half alone.
  OK(MPI_File_write_at_all(file, (MPI_Offset)rank * kBytes, mine, kBytes / 2, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_write_at(file, (MPI_Offset)rank * kBytes + kBytes / 2, mine, kBytes / 2, MPI_CHAR, MPI_STATUS_IGNORE));
  return file;
}

static int in_session(void) {
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  OK(MPI_Comm_create_from_group(group, "endings", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  MPI_Group_free(&group);
  MPI_File file = write_file(comm);
  char* got = malloc(kBytes);
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  OK(MPI_File_read_at_all(file, (MPI_Offset)rank * kBytes, got, kBytes, MPI_CHAR, MPI_STATUS_IGNORE));
  if (memcmp(got, mine, kBytes) != 0) {
    fprintf(stderr, "endings: rank %d read something else than it wrote\n", rank);
    ++failures;
  }
  OK(MPI_File_close(&file));
  OK(MPI_Comm_free(&comm));
  OK(MPI_Session_finalize(&session));
  return failures != 0;
#else
  return 77;
#endif
}

static MPI_File kept;
static int close_kept(MPI_Comm comm, int key, void* value, void* state) {
  (void)comm;
  (void)key;
  (void)value;
  (void)state;
  OK(MPI_File_close(&kept));
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "";
  if (strcmp(way, "session") == 0) return in_session();
  MPI_Init(&argc, &argv);
  if (strcmp(way, "double") == 0) {
    // Deleted last first (MPI-4.1 §11.4.1): this one after what was set at the open, or before; both must do.
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_kept, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  }
  kept = write_file(MPI_COMM_WORLD);
  if (strcmp(way, "exit") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    exit(failures != 0);
  }
  if (strcmp(way, "nonblocking") == 0) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 16; ++i) {
      MPI_Request request;
      const int part = kBytes / 16;
      OK(MPI_File_iwrite_at(kept, (MPI_Offset)rank * kBytes + i * part, mine + i * part, part, MPI_CHAR, &request));
      OK(MPI_Request_free(&request));
    }
    // MPI has no way to know that they have ended but the close.
    OK(MPI_File_close(&kept));
  }
  if (strcmp(way, "return") == 0) {
    OK(MPI_File_close(&kept));
    return failures != 0;
  }
  MPI_Finalize();
  return failures != 0;
}
