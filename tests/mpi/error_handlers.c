// Error handlers of files (MPI-4.1 §14.7): MPI_ERRORS_RETURN by default; a user function is called with the handle and the code; files take
// over what MPI_FILE_NULL has when they are opened, which also hears of opens and deletions that fail; a handler that was freed while files
// use it goes on working.
#include <stdio.h>
#include <string.h>

#include "check.h"

static struct {
  int calls, class;
  MPI_File file;
} heard;

static void listen(MPI_File* file, int* code, ...) {
  ++heard.calls;
  heard.file = *file;
  MPI_Error_class(*code, &heard.class);
}
static int other_calls;
static void listen_too(MPI_File* file, int* code, ...) {
  (void)file;
  (void)code;
  ++other_calls;
}

static void forget(void) { memset(&heard, 0, sizeof heard); }

static void cause_error(MPI_File file, int class) { CHECK_CLASS(MPI_File_seek(file, -1, MPI_SEEK_SET), class); }

static void defaults(void) {
  MPI_Errhandler handler;
  OK(MPI_File_get_errhandler(MPI_FILE_NULL, &handler));
  CHECK(handler == MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&handler);
  MPI_File file = create_world("");
  OK(MPI_File_get_errhandler(file, &handler));
  CHECK(handler == MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&handler);
  OK(MPI_File_close(&file));
}

static void user_function(void) {
  MPI_Errhandler handler;
  MPI_Errhandler got;
  OK(MPI_File_create_errhandler(listen, &handler));
  MPI_File file = create_world("");
  MPI_File other = create_world("other");
  OK(MPI_File_set_errhandler(file, handler));
  OK(MPI_File_get_errhandler(file, &got));
  CHECK(got == handler);
  OK(MPI_Errhandler_free(&got));
  CHECK(got == MPI_ERRHANDLER_NULL);
  forget();
  cause_error(other, MPI_ERR_ARG);
  CHECK_INT(heard.calls, 0);
  cause_error(file, MPI_ERR_ARG);
  CHECK_INT(heard.calls, 1);
  CHECK_INT(heard.class, MPI_ERR_ARG);
  CHECK(heard.file == file);
  // Given back by the program, still in use by the file.
  OK(MPI_Errhandler_free(&handler));
  CHECK(handler == MPI_ERRHANDLER_NULL);
  forget();
  char c = 0;
  CHECK_CLASS(MPI_File_write_at_all(file, -1, &c, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  CHECK_INT(heard.calls, 1);
  CHECK(heard.file == file);
  forget();
  OK(MPI_File_call_errhandler(file, MPI_ERR_QUOTA));
  CHECK_INT(heard.calls, 1);
  CHECK_INT(heard.class, MPI_ERR_QUOTA);
  // Another one, then the first again through a reference that get_errhandler gave.
  OK(MPI_File_get_errhandler(file, &got));
  MPI_Errhandler second;
  OK(MPI_File_create_errhandler(listen_too, &second));
  OK(MPI_File_set_errhandler(file, second));
  forget();
  other_calls = 0;
  cause_error(file, MPI_ERR_ARG);
  CHECK_INT(heard.calls, 0);
  CHECK_INT(other_calls, 1);
  OK(MPI_File_set_errhandler(file, got));
  OK(MPI_Errhandler_free(&got));
  OK(MPI_Errhandler_free(&second));
  cause_error(file, MPI_ERR_ARG);
  CHECK_INT(heard.calls, 1);
  CHECK_INT(other_calls, 1);
  OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
  cause_error(file, MPI_ERR_ARG);
  CHECK_INT(heard.calls, 1);
  OK(MPI_File_close(&file));
  OK(MPI_File_close(&other));
}

static void inherited(void) {
  MPI_Errhandler handler;
  OK(MPI_File_create_errhandler(listen, &handler));
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
  forget();
  MPI_File file;
  CHECK_CLASS(MPI_File_open(MPI_COMM_WORLD, file_name("none"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
              MPI_ERR_NO_SUCH_FILE);
  CHECK_INT(heard.calls, 1);
  CHECK_INT(heard.class, MPI_ERR_NO_SUCH_FILE);
  CHECK(heard.file == MPI_FILE_NULL);
  forget();
  CHECK_CLASS(MPI_File_delete(file_name("none"), MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  CHECK_INT(heard.calls, 1);
  CHECK(heard.file == MPI_FILE_NULL);
  file = create_world("");
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  OK(MPI_Errhandler_free(&handler));
  forget();
  cause_error(file, MPI_ERR_ARG);
  CHECK_INT(heard.calls, 1);
  CHECK(heard.file == file);
  OK(MPI_File_close(&file));
  file = create_world("");
  forget();
  cause_error(file, MPI_ERR_ARG);
  CHECK_INT(heard.calls, 0);
  OK(MPI_File_close(&file));
}

// An operation inside the handler: it looks at the file by every means, and the handler of a close sees the handle.
static char seen_inside[8];
static void look_inside(MPI_File* file, int* code, ...) {
  (void)code;
  MPI_Offset size = 0;
  if (MPI_File_get_size(*file, &size) == MPI_SUCCESS) ++heard.calls;
  FILE* stream = fopen(file_name("other"), "r");
  if (stream == NULL) return;
  if (fread(seen_inside, 1, 5, stream) != 5) seen_inside[0] = 0;
  fclose(stream);
}
static void calls_inside_a_handler(void) {
  char other_name[256];
  snprintf(other_name, sizeof other_name, "%s", file_name("other"));
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_SELF, other_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  if (rank == 0) OK(MPI_File_write_at(file, 0, "bytes", 5, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  barrier();
  MPI_Errhandler handler;
  OK(MPI_File_create_errhandler(look_inside, &handler));
  file = create_world("");
  OK(MPI_File_set_errhandler(file, handler));
  forget();
  memset(seen_inside, 0, sizeof seen_inside);
  cause_error(file, MPI_ERR_ARG);
  CHECK_INT(heard.calls, 1);
  CHECK_TEXT(seen_inside, "bytes");
  OK(MPI_File_close(&file));
  OK(MPI_Errhandler_free(&handler));
}

const struct test_case kErrorHandlerCases[] = {
    {"error_handlers.defaults", defaults, 1},
    {"error_handlers.user_function", user_function, 1},
    {"error_handlers.inherited", inherited, 1},
    {"error_handlers.calls_inside", calls_inside_a_handler, 1},
    {NULL, NULL, 0},
};
