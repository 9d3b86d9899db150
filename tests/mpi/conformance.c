// Runs conformance cases of MPI-IO (MPI-4.1 chapter 14) one after the other in one MPI job, on files in the working directory:
//
//   mpiexec -n 3 ./conformance [--except NAME,...] [NAME]...
//
// A NAME is that of a case, or of a family of them (what stands before the dot). Ends with 0 when all cases passed on all ranks, else with
// 1. Each rank that finds something wrong says so on standard error. A case that takes longer than a limit ends the run, with its name.
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "run.h"

enum { kCaseSecondsMax = 40 };

static const struct test_case* const kFamilies[] = {
    kErrorCases,       kErrorHandlerCases, kViewCases,        kDatatypeCases, kPointerCases, kCollectiveCases,
    kNonblockingCases, kSizeCases,         kConsistencyCases, kArrivalCases,  kHandleCases,  kCommunicatorCases,
};

void give_up(const char* why) {
  fprintf(stderr, "rank %d of %d, %s: %s\n", rank, ranks, case_name, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
  abort();
}

// Only what a signal handler may do.
static void too_long(int signal_number) {
  (void)signal_number;
  char text[160];
  size_t length = 0;
  for (const char* part = case_name; *part && length < sizeof text - 40; ++part) text[length++] = *part;
  const char rest[] = ": still not at its end on rank ";
  memcpy(text + length, rest, sizeof rest - 1);
  length += sizeof rest - 1;
  if (rank >= 10) text[length++] = (char)('0' + rank / 10 % 10);
  text[length++] = (char)('0' + rank % 10);
  text[length++] = '\n';
  if (write(STDERR_FILENO, text, length) < 0) _exit(3);
  _exit(2);
}

static int named(const char* list, const char* name) {
  const size_t length = strlen(name);
  for (const char* at = list; at != NULL && *at; at = *at ? at + 1 : at) {
    const size_t part = strcspn(at, ",");
    if (part == length && strncmp(at, name, part) == 0) return 1;
    at += part;
    if (!*at) break;
  }
  return 0;
}

static int wanted(const char* name, int argc, char** argv, int first) {
  if (first >= argc) return 1;
  for (int i = first; i < argc; ++i) {
    const size_t length = strlen(argv[i]);
    if (strncmp(name, argv[i], length) == 0 && (name[length] == 0 || name[length] == '.')) return 1;
  }
  return 0;
}

// Whether it passed everywhere.
static int run_case(const struct test_case* test) {
  case_name = test->name;
  failures = 0;
  barrier();
  alarm(kCaseSecondsMax);
  test->run();
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  alarm(0);
  if (all > 0 && rank == 0) fprintf(stderr, "FAILED %s: %d checks\n", test->name, all);
  return all == 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  signal(SIGALRM, too_long);
  const int has_except = argc > 2 && strcmp(argv[1], "--except") == 0;
  const char* except = has_except ? argv[2] : NULL;
  int run = 0;
  int bad = 0;
  for (size_t i = 0; i < sizeof kFamilies / sizeof *kFamilies; ++i) {
    for (const struct test_case* test = kFamilies[i]; test->name != NULL; ++test) {
      if (ranks < test->ranks_min || named(except, test->name) || !wanted(test->name, argc, argv, has_except ? 3 : 1))
        continue;
      ++run;
      bad += !run_case(test);
    }
  }
  case_name = "the end";
  if (rank == 0) printf("%d cases, %d failed\n", run, bad);
  if (run == 0) bad = 1;
  MPI_Finalize();
  return bad != 0;
}
