#define _XOPEN_SOURCE 700
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

int rank, ranks;
int failures;
const char* case_name = "";

// Only the first failures of a case are printed: one mistake can fail a check in a loop.
enum { kPrintedMax = 5 };

static const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static void report(const char* file, int line, const char* text) {
  if (++failures <= kPrintedMax)
    fprintf(stderr, "rank %d of %d, %s, %s:%d: %s\n", rank, ranks, case_name, base_name(file), line, text);
}

void failed(const char* file, int line, const char* text) {
  char all[512];
  snprintf(all, sizeof all, "expected %s", text);
  report(file, line, all);
}

void check_int(const char* file, int line, const char* what, long long got, long long expected) {
  if (got == expected) return;
  char text[512];
  snprintf(text, sizeof text, "%s: expected %lld, got %lld", what, expected, got);
  report(file, line, text);
}

void check_text(const char* file, int line, const char* what, const char* got, const char* expected) {
  if (strcmp(got, expected) == 0) return;
  char text[1024];
  snprintf(text, sizeof text, "%s: expected '%s', got '%s'", what, expected, got);
  report(file, line, text);
}

static void describe(int code, char* text, size_t bytes) {
  char words[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, words, &length) != MPI_SUCCESS) words[0] = 0;
  snprintf(text, bytes, "%d (%.100s)", code, words);
}

void check_class(const char* file, int line, const char* what, int error, const int* accepted, int count) {
  int class = MPI_ERR_UNKNOWN;
  MPI_Error_class(error, &class);
  for (int i = 0; i < count; ++i) {
    if (class == accepted[i]) return;
  }
  char expected[160];
  char got[160];
  char text[700];
  describe(accepted[0], expected, sizeof expected);
  describe(class, got, sizeof got);
  snprintf(text, sizeof text, "%.200s: expected error class %s, got %s", what, expected, got);
  report(file, line, text);
}

void check_bytes(const char* file, int line, const char* what, const void* got, const void* expected, long long bytes) {
  const unsigned char* a = got;
  const unsigned char* b = expected;
  for (long long i = 0; i < bytes; ++i) {
    if (a[i] == b[i]) continue;
    long long wrong = 0;
    for (long long j = i; j < bytes; ++j) wrong += a[j] != b[j];
    char text[512];
    snprintf(text, sizeof text, "%s: byte %lld of %lld: expected %d, got %d; %lld bytes are wrong", what, i, bytes,
             b[i], a[i], wrong);
    report(file, line, text);
    return;
  }
}

void check_file(const char* file, int line, const char* path, const void* expected, long long bytes) {
  const int fd = open(path, O_RDONLY);
  if (fd < 0) {
    char text[512];
    snprintf(text, sizeof text, "%s: expected %lld bytes, got: %s", path, bytes, strerror(errno));
    report(file, line, text);
    return;
  }
  check_int(file, line, path, lseek(fd, 0, SEEK_END), bytes);
  unsigned char* got = new_bytes(bytes);
  for (long long done = 0; done < bytes;) {
    const ssize_t part = pread(fd, got + done, (size_t)(bytes - done), done);
    if (part <= 0) break;
    done += part;
  }
  close(fd);
  check_bytes(file, line, path, got, expected, bytes);
  free(got);
}

void check_elements(const char* file, int line, const MPI_Status* status, MPI_Datatype type, long long expected) {
  int elements = -1;
  MPI_Get_elements(status, type, &elements);
  check_int(file, line, "MPI_Get_elements", elements, expected);
}

const char* file_name(const char* suffix) {
  static char name[256];
  snprintf(name, sizeof name, "%s%s%s", case_name, *suffix ? "." : "", suffix);
  return name;
}

void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

MPI_File open_world(const char* suffix, int amode) {
  MPI_File file = MPI_FILE_NULL;
  const int error = MPI_File_open(MPI_COMM_WORLD, file_name(suffix), amode, MPI_INFO_NULL, &file);
  if (error != MPI_SUCCESS) {
    OK(error);
    give_up("cannot open the file of the case");
  }
  return file;
}

MPI_File create_world(const char* suffix) {
  if (rank == 0) remove(file_name(suffix));
  barrier();
  return open_world(suffix, MPI_MODE_CREATE | MPI_MODE_RDWR);
}

unsigned char byte_at(unsigned seed, long long offset) {
  uint64_t x = (uint64_t)offset * UINT64_C(0x9e3779b97f4a7c15) + seed * UINT64_C(0xbf58476d1ce4e5b9);
  x ^= x >> 29;
  x *= UINT64_C(0x94d049bb133111eb);
  return (unsigned char)((x >> 40) % 255 + 1);
}

void fill_bytes(void* out, long long bytes, unsigned seed, long long offset) {
  unsigned char* to = out;
  for (long long i = 0; i < bytes; ++i) to[i] = byte_at(seed, offset + i);
}

void* new_bytes(long long bytes) {
  void* made = calloc(1, (size_t)(bytes > 0 ? bytes : 1));
  if (made == NULL) give_up("no memory");
  return made;
}

// The bytes of a buffer are made to spell their own addresses, one digit a pass; MPI_Pack then tells in which order it takes them.
long long* type_offsets(MPI_Datatype type, long long* count) {
  enum { kDigits = 4 };
  MPI_Aint lower = 0;
  MPI_Aint span = 0;
  int size = 0;
  MPI_Type_get_true_extent(type, &lower, &span);
  MPI_Type_size(type, &size);
  unsigned char* buffer = new_bytes(span);
  unsigned char* packed = new_bytes(size);
  long long* offsets = new_bytes((long long)sizeof(long long) * size);
  for (int digit = 0; digit < kDigits && size > 0; ++digit) {
    for (MPI_Aint i = 0; i < span; ++i) buffer[i] = (unsigned char)(i >> (8 * digit));
    int position = 0;
    MPI_Pack(buffer - lower, 1, type, packed, size, &position, MPI_COMM_SELF);
    for (int i = 0; i < size; ++i) offsets[i] |= (long long)packed[i] << (8 * digit);
  }
  for (int i = 0; i < size; ++i) offsets[i] += lower;
  free(buffer);
  free(packed);
  *count = size;
  return offsets;
}

long long view_offset(const long long* offsets, long long count, long long extent, long long displacement,
                      long long position) {
  return displacement + position / count * extent + offsets[position % count];
}
