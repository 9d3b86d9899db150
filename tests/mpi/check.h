// What the conformance cases are made of: a case is a function that every rank calls, and a failed check is a line that names rank, place,
// expected and got. A case goes on after a failed check, so that no rank leaves the others alone in a collective call.
#pragma once

#include <mpi.h>
#include <stddef.h>

struct test_case {
  const char* name;
  void (*run)(void);
  int ranks_min;  // with fewer there is nothing to prove
};

// A family is a source file of its own; its list ends with a null name.
extern const struct test_case kErrorCases[], kErrorHandlerCases[], kViewCases[], kDatatypeCases[], kPointerCases[],
    kCollectiveCases[], kNonblockingCases[], kSizeCases[], kConsistencyCases[], kArrivalCases[], kHandleCases[],
    kCommunicatorCases[];

// This rank in MPI_COMM_WORLD, and its size.
extern int rank, ranks;

// The file of the running case: its name in the working directory, the same on every rank, until the next call.
const char* file_name(const char* suffix);

void failed(const char* file, int line, const char* text);
void check_int(const char* file, int line, const char* what, long long got, long long expected);
void check_class(const char* file, int line, const char* what, int error, const int* accepted, int count);
void check_text(const char* file, int line, const char* what, const char* got, const char* expected);
void check_bytes(const char* file, int line, const char* what, const void* got, const void* expected, long long bytes);
void check_file(const char* file, int line, const char* path, const void* expected, long long bytes);
void check_elements(const char* file, int line, const MPI_Status* status, MPI_Datatype type, long long expected);

#define CHECK(condition) ((condition) ? (void)0 : failed(__FILE__, __LINE__, #condition))
#define CHECK_INT(got, expected) check_int(__FILE__, __LINE__, #got, (long long)(got), (long long)(expected))
#define CHECK_TEXT(got, expected) check_text(__FILE__, __LINE__, #got, got, expected)
// The call succeeds.
#define OK(call) CHECK_CLASS(call, MPI_SUCCESS)
// The call fails with one of these classes; the same on every rank where it is collective.
#define CHECK_CLASS(call, ...)                                             \
  check_class(__FILE__, __LINE__, #call, call, (const int[]){__VA_ARGS__}, \
              (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
#define CHECK_BYTES(got, expected, bytes) check_bytes(__FILE__, __LINE__, #got, got, expected, bytes)
// What POSIX finds in the file. Not collective.
#define CHECK_FILE(path, expected, bytes) check_file(__FILE__, __LINE__, path, expected, bytes)
#define CHECK_ELEMENTS(status, type, expected) check_elements(__FILE__, __LINE__, status, type, expected)

// All ranks opened MPI_COMM_WORLD's file `suffix` of this case; a failure ends the run.
MPI_File open_world(const char* suffix, int amode);
// Fresh: rank 0 has removed what an earlier run left.
MPI_File create_world(const char* suffix);
void barrier(void);
// Rank 0 compares the file with `expected` while the others wait.
#define CHECK_FILE_AT_ROOT(path, expected, bytes)     \
  do {                                                \
    barrier();                                        \
    if (rank == 0) CHECK_FILE(path, expected, bytes); \
    barrier();                                        \
  } while (0)

// Bytes that tell where they belong; never 0.
unsigned char byte_at(unsigned seed, long long offset);
void fill_bytes(void* out, long long bytes, unsigned seed, long long offset);
// Zeroed, checked.
void* new_bytes(long long bytes);

// Where each byte of one element of a type lies, relative to the buffer, in the order in which MPI_Pack takes them: the oracle for
// types and views. The caller frees it.
long long* type_offsets(MPI_Datatype type, long long* count);
// The file offset of byte `position` of a view.
long long view_offset(const long long* offsets, long long count, long long extent, long long displacement,
                      long long position);
