// After MPI_File_close a program, or one that it starts, looks at the file by other means than MPI-IO: it finds the whole file, whoever wrote it
// and however it looks.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { kEach = 1 << 20, kTail = 12345 };

static unsigned char* expected;
static long long bytes;

// Written collectively in the front part, by each rank alone in the tail; closed, and known to be closed by all.
static void write_file(unsigned seed) {
  bytes = ((long long)kEach + kTail) * ranks;
  expected = new_bytes(bytes);
  fill_bytes(expected, bytes, seed, 0);
  MPI_File file = create_world("");
  MPI_Offset at = (MPI_Offset)kEach * rank;
  OK(MPI_File_write_at_all(file, at, expected + at, kEach, MPI_BYTE, MPI_STATUS_IGNORE));
  at = (MPI_Offset)kEach * ranks + (MPI_Offset)kTail * rank;
  OK(MPI_File_write_at(file, at, expected + at, kTail, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  barrier();
}
static void finish(void) {
  barrier();
  free(expected);
}
// The last rank looks: it wrote only a part.
static int looking(void) { return rank == ranks - 1; }

static void by_open(void) {
  write_file(1);
  CHECK_FILE(file_name(""), expected, bytes);  // every rank
  finish();
}

static void by_openat(void) {
  write_file(2);
  if (looking()) {
    const int folder = open(".", O_RDONLY | O_DIRECTORY);
    const int fd = openat(folder, file_name(""), O_RDONLY);
    unsigned char* got = new_bytes(bytes);
    CHECK_INT(read(fd, got, (size_t)bytes), bytes);
    CHECK_BYTES(got, expected, bytes);
    close(fd);
    close(folder);
    free(got);
  }
  finish();
}

static void by_stdio(void) {
  write_file(3);
  if (looking()) {
    FILE* stream = fopen(file_name(""), "rb");
    unsigned char* got = new_bytes(bytes);
    CHECK_INT(fread(got, 1, (size_t)bytes, stream), bytes);
    CHECK_BYTES(got, expected, bytes);
    memset(got, 0, (size_t)bytes);
    stream = freopen(file_name(""), "rb", stream);
    CHECK_INT(fread(got, 1, (size_t)bytes, stream), bytes);
    CHECK_BYTES(got, expected, bytes);
    fclose(stream);
    free(got);
  }
  finish();
}

static void by_mmap(void) {
  write_file(4);
  if (looking()) {
    const int fd = open(file_name(""), O_RDONLY);
    void* mapped = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    CHECK_BYTES(mapped, expected, bytes);
    munmap(mapped, (size_t)bytes);
  }
  finish();
}

static void by_stat(void) {
  write_file(5);
  struct stat st;
  CHECK_INT(stat(file_name(""), &st), 0);
  CHECK_INT(st.st_size, bytes);
  CHECK_INT(access(file_name(""), R_OK), 0);
  finish();
}

// The expectation as a file, for cmp.
static void write_expected(void) {
  FILE* stream = fopen(file_name("expected"), "wb");
  CHECK_INT(fwrite(expected, 1, (size_t)bytes, stream), bytes);
  fclose(stream);
}

static void by_system(void) {
  write_file(6);
  if (looking()) {
    write_expected();
    char command[600];
    snprintf(command, sizeof command, "cmp %s", file_name(""));
    snprintf(command + strlen(command), sizeof command - strlen(command), " %s", file_name("expected"));
    CHECK_INT(system(command), 0);
  }
  finish();
}

static void by_popen(void) {
  write_file(7);
  if (looking()) {
    char command[300];
    snprintf(command, sizeof command, "cat %s", file_name(""));
    FILE* stream = popen(command, "r");
    unsigned char* got = new_bytes(bytes);
    CHECK_INT(fread(got, 1, (size_t)bytes, stream), bytes);
    CHECK_BYTES(got, expected, bytes);
    CHECK_INT(pclose(stream), 0);
    free(got);
  }
  finish();
}

static void expect_success(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  CHECK_INT(status, 0);
}

static void by_exec(void) {
  write_file(8);
  if (looking()) {
    write_expected();
    char name[256];
    snprintf(name, sizeof name, "%s", file_name(""));
    const char* other = file_name("expected");
    pid_t child = fork();
    if (child == 0) {
      execlp("cmp", "cmp", name, other, (char*)NULL);
      _exit(99);
    }
    expect_success(child);
    extern char** environ;
    char* arguments[] = {(char*)"cmp", name, (char*)other, NULL};
    CHECK_INT(posix_spawnp(&child, "cmp", NULL, NULL, arguments, environ), 0);
    expect_success(child);
  }
  finish();
}

// A child that starts no program, but looks itself.
static void by_fork(void) {
  write_file(9);
  if (looking()) {
    const pid_t child = fork();
    if (child == 0) {
      const int fd = open(file_name(""), O_RDONLY);
      unsigned char* got = malloc((size_t)bytes);
      const int good =
          fd >= 0 && got != NULL && read(fd, got, (size_t)bytes) == bytes && memcmp(got, expected, (size_t)bytes) == 0;
      _exit(good ? 0 : 1);
    }
    expect_success(child);
  }
  finish();
}

// Written under one name, looked at under another.
static void by_other_names(void) {
  write_file(10);
  if (looking()) {
    char name[256];
    snprintf(name, sizeof name, "%s", file_name(""));
    char other[256];
    snprintf(other, sizeof other, "%s", file_name("renamed"));
    CHECK_INT(rename(name, other), 0);
    CHECK_FILE(other, expected, bytes);
    CHECK_INT(link(other, name), 0);
    CHECK_INT(unlink(other), 0);
    CHECK_INT(symlink(name, other), 0);
    CHECK_FILE(other, expected, bytes);
    CHECK_INT(unlink(other), 0);
  }
  finish();
}

// Cut by POSIX: what was cut off does not come back.
static void by_truncate(void) {
  for (int by_descriptor = 0; by_descriptor < 2; ++by_descriptor) {
    write_file(11 + (unsigned)by_descriptor);
    if (looking()) {
      if (by_descriptor) {
        const int fd = open(file_name(""), O_RDWR);
        CHECK_INT(ftruncate(fd, 1000), 0);
        close(fd);
      } else {
        CHECK_INT(truncate(file_name(""), 1000), 0);
      }
      CHECK_FILE(file_name(""), expected, 1000);
    }
    barrier();
    MPI_File file = open_world("", MPI_MODE_RDONLY);
    MPI_Offset size = 0;
    OK(MPI_File_get_size(file, &size));
    CHECK_INT(size, 1000);
    OK(MPI_File_close(&file));
    finish();
  }
}

// Opened for writing with O_TRUNC and written anew by POSIX, and read by MPI again.
static void rewritten(void) {
  write_file(13);
  if (looking()) {
    FILE* stream = fopen(file_name(""), "wb");
    fputs("new", stream);
    fclose(stream);
  }
  barrier();
  CHECK_FILE(file_name(""), "new", 3);
  MPI_File file = open_world("", MPI_MODE_RDWR);
  char got[8] = "";
  OK(MPI_File_read_at_all(file, 0, got, 8, MPI_CHAR, MPI_STATUS_IGNORE));
  CHECK_TEXT(got, "new");
  OK(MPI_File_close(&file));
  finish();
}

// Not hooked is what needs no name: a descriptor that was opened before. After a sync it sees everything.
static void by_an_earlier_descriptor(void) {
  MPI_File file = create_world("");
  const int fd = open(file_name(""), O_RDONLY);
  enum { kBytes = 100000 };
  unsigned char* mine = new_bytes(kBytes);
  const MPI_Offset at = (MPI_Offset)kBytes * rank;
  fill_bytes(mine, kBytes, 20, at);
  OK(MPI_File_write_at_all(file, at, mine, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  barrier();
  unsigned char* got = new_bytes((long long)kBytes * ranks);
  unsigned char* all = new_bytes((long long)kBytes * ranks);
  fill_bytes(all, (long long)kBytes * ranks, 20, 0);
  CHECK_INT(pread(fd, got, (size_t)kBytes * (size_t)ranks, 0), (long long)kBytes * ranks);
  CHECK_BYTES(got, all, (long long)kBytes * ranks);
  OK(MPI_File_close(&file));
  close(fd);
  free(all);
  free(got);
  free(mine);
}

const struct test_case kArrivalCases[] = {
    {"arrivals.by_open", by_open, 1},
    {"arrivals.by_openat", by_openat, 1},
    {"arrivals.by_stdio", by_stdio, 1},
    {"arrivals.by_mmap", by_mmap, 1},
    {"arrivals.by_stat", by_stat, 1},
    {"arrivals.by_system", by_system, 1},
    {"arrivals.by_popen", by_popen, 1},
    {"arrivals.by_exec", by_exec, 1},
    {"arrivals.by_fork", by_fork, 1},
    {"arrivals.by_other_names", by_other_names, 1},
    {"arrivals.by_truncate", by_truncate, 1},
    {"arrivals.rewritten", rewritten, 1},
    {"arrivals.by_an_earlier_descriptor", by_an_earlier_descriptor, 1},
    {NULL, NULL, 0},
};
