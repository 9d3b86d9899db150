// Carries out steps of MPI-IO, given as words, and notes the error class that every rank got from each. It knows
// nothing of Spillway; MPI_File errors are returned, as MPI has it by default.
//
//   mpiexec -n P steps OUTPUT RESULTS CONTROL PIECES STEP...
//
//   open:NAME   opens OUTPUT.NAME for reading and writing, made when it is not there
//   hint:K=V    gives the hint to every later open
//   show:K      rank 0 notes what MPI_File_get_info shows for it
//   write       every rank its part of the next block, collectively; redo: of the same block again
//   again       redo, until some rank gets an error
//   single      as write, but each rank on its own
//   sync, close
//   tell:TEXT   rank 0 writes TEXT to the file CONTROL, with _ for blanks
//
// A block is PIECES pieces of each rank in turn; a piece is 1000 bytes that count up from a value of its own.
// A line of the file RESULTS is a step and the class of rank 0, rank 1, ...; the last one is "end".
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 1000, CALLS_MAX = 20000 };

struct program {
  const char *output, *control;
  FILE* results;  // of rank 0
  int pieces, rank, ranks, block;
  unsigned char* data;
  MPI_File file;
  MPI_Info hints;
};

static const struct {
  int value;
  const char* name;
} kClasses[] = {{MPI_SUCCESS, "SUCCESS"},   {MPI_ERR_NO_SPACE, "NO_SPACE"},   {MPI_ERR_QUOTA, "QUOTA"},
                {MPI_ERR_IO, "IO"},         {MPI_ERR_READ_ONLY, "READ_ONLY"}, {MPI_ERR_ACCESS, "ACCESS"},
                {MPI_ERR_NO_MEM, "NO_MEM"}, {MPI_ERR_FILE, "FILE"},           {MPI_ERR_NO_SUCH_FILE, "NO_SUCH_FILE"}};

static const char* class_name(int class) {
  for (size_t i = 0; i < sizeof kClasses / sizeof kClasses[0]; i++)
    if (kClasses[i].value == class) return kClasses[i].name;
  return "ANOTHER";
}

// Collective. Rank 0 notes the class of every rank.
static void report(const struct program* p, const char* step, int result) {
  int class = MPI_SUCCESS, *all = calloc((size_t)p->ranks, sizeof *all);
  if (result != MPI_SUCCESS) MPI_Error_class(result, &class);
  MPI_Gather(&class, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (p->rank == 0) {
    fprintf(p->results, "%s", step);
    for (int rank = 0; rank < p->ranks; rank++) fprintf(p->results, " %s", class_name(all[rank]));
    fprintf(p->results, "\n");
    fflush(p->results);
  }
  free(all);
}

static int open_file(struct program* p, const char* name) {
  char path[4096];
  MPI_Datatype piece, mine;
  snprintf(path, sizeof path, "%s.%s", p->output, name);
  int result = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, p->hints, &p->file);
  if (result != MPI_SUCCESS) return result;
  MPI_Type_contiguous(PIECE_BYTES, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, (MPI_Aint)PIECE_BYTES * p->ranks, &mine);
  MPI_Type_commit(&mine);
  result = MPI_File_set_view(p->file, (MPI_Offset)p->rank * PIECE_BYTES, MPI_BYTE, mine, "native", MPI_INFO_NULL);
  MPI_Type_free(&piece);
  MPI_Type_free(&mine);
  p->block = -1;
  return result;
}

static int write_block(struct program* p, int alone) {
  const int bytes = p->pieces * PIECE_BYTES;
  const MPI_Offset offset = (MPI_Offset)p->block * bytes;
  for (int piece = 0; piece < p->pieces; piece++)
    for (int i = 0; i < PIECE_BYTES; i++)
      p->data[(size_t)piece * PIECE_BYTES + (size_t)i] = (unsigned char)(p->rank * 31 + p->block * 17 + piece * 7 + i);
  if (alone) return MPI_File_write_at(p->file, offset, p->data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  return MPI_File_write_at_all(p->file, offset, p->data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
}

// Collective. 1 when some rank got an error.
static int some_error(int result) {
  const int mine = result != MPI_SUCCESS;
  int any = 0;
  MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any;
}

static void tell(const struct program* p, const char* text) {
  if (p->rank == 0) {
    FILE* control = fopen(p->control, "w");
    for (const char* c = text; control && *c; c++) fputc(*c == '_' ? ' ' : *c, control);
    if (!control || fclose(control)) MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void give_hint(struct program* p, const char* text) {
  char key[MPI_MAX_INFO_KEY + 1] = "";
  const char* equals = strchr(text, '=');
  if (!equals || (size_t)(equals - text) >= sizeof key) MPI_Abort(MPI_COMM_WORLD, 2);
  memcpy(key, text, (size_t)(equals - text));
  if (p->hints == MPI_INFO_NULL) MPI_Info_create(&p->hints);
  MPI_Info_set(p->hints, key, equals + 1);
}

static void show_hint(const struct program* p, const char* key) {
  char value[256] = "";
  int found = 0;
  MPI_Info shown;
  MPI_File_get_info(p->file, &shown);
  MPI_Info_get(shown, key, sizeof value - 1, value, &found);
  MPI_Info_free(&shown);
  if (p->rank == 0) fprintf(p->results, "shown %s=%s\n", key, found ? value : "none");
}

static void carry_out(struct program* p, const char* step) {
  if (!strncmp(step, "open:", 5)) {
    report(p, "open", open_file(p, step + 5));
  } else if (!strcmp(step, "write") || !strcmp(step, "single")) {
    p->block++;
    report(p, step, write_block(p, !strcmp(step, "single")));
  } else if (!strcmp(step, "redo")) {
    report(p, step, write_block(p, 0));
  } else if (!strcmp(step, "again")) {
    int result = MPI_SUCCESS, calls = 0;
    do {
      result = write_block(p, 0);
      calls++;
    } while (!some_error(result) && calls < CALLS_MAX);
    report(p, step, result);
  } else if (!strcmp(step, "sync")) {
    report(p, step, MPI_File_sync(p->file));
  } else if (!strcmp(step, "close")) {
    report(p, step, MPI_File_close(&p->file));
  } else if (!strncmp(step, "hint:", 5)) {
    give_hint(p, step + 5);
  } else if (!strncmp(step, "show:", 5)) {
    show_hint(p, step + 5);
  } else if (!strncmp(step, "tell:", 5)) {
    tell(p, step + 5);
  } else {
    if (p->rank == 0) fprintf(stderr, "steps: %s: unknown step\n", step);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

int main(int argc, char** argv) {
  struct program p = {.block = -1, .hints = MPI_INFO_NULL};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &p.ranks);
  if (argc < 5) MPI_Abort(MPI_COMM_WORLD, 2);
  p.output = argv[1];
  p.results = p.rank == 0 ? fopen(argv[2], "w") : NULL;
  p.control = argv[3];
  p.pieces = atoi(argv[4]);
  p.data = malloc((size_t)p.pieces * PIECE_BYTES + 1);
  if (!p.data || (p.rank == 0 && !p.results)) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int i = 5; i < argc; i++) carry_out(&p, argv[i]);
  free(p.data);
  if (p.hints != MPI_INFO_NULL) MPI_Info_free(&p.hints);
  MPI_Finalize();
  if (!p.results) return 0;
  fprintf(p.results, "end\n");
  return fclose(p.results) != 0;
}
