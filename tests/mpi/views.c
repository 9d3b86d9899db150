// File views: every constructor of datatypes as a file type, collectively and independently written from scattered memory and read back; bytes
// between the pieces stay as they were; what a view is asked about itself; offsets beyond 4 GiB.
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

// --- tiles: the part of a rank in each repetition of a view; those of different ranks do not overlap ---

enum { kChunk = 512, kDisplacement = 40 };

static MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}
static MPI_Datatype replaced(MPI_Datatype made, MPI_Datatype part) {
  MPI_Type_free(&part);
  return made;
}
static MPI_Datatype resized(MPI_Datatype type, MPI_Aint extent) {
  MPI_Datatype made;
  MPI_Type_create_resized(type, 0, extent, &made);
  return replaced(made, type);
}

static MPI_Datatype contiguous_tile(void) {
  MPI_Datatype type;
  MPI_Type_contiguous(6, MPI_DOUBLE, &type);
  return type;
}
static MPI_Datatype vector_tile(void) {
  MPI_Datatype type;
  MPI_Type_vector(5, 2, 7, MPI_DOUBLE, &type);
  return type;
}
static MPI_Datatype hvector_tile(void) {
  MPI_Datatype type;
  MPI_Type_create_hvector(6, 3, 61, MPI_SHORT, &type);
  return resized(type, 400);
}
static MPI_Datatype indexed_tile(void) {
  const int lengths[] = {1, 0, 4, 3};
  const int places[] = {2, 5, 9, 40};
  MPI_Datatype type;
  MPI_Type_indexed(4, lengths, places, MPI_DOUBLE, &type);
  return type;
}
static MPI_Datatype hindexed_tile(void) {
  const int lengths[] = {3, 1, 20};
  const MPI_Aint places[] = {1, 17, 100};
  MPI_Datatype type;
  MPI_Type_create_hindexed(3, lengths, places, MPI_CHAR, &type);
  return type;
}
static MPI_Datatype indexed_block_tile(void) {
  const int places[] = {0, 3, 9, 30};
  MPI_Datatype type;
  MPI_Type_create_indexed_block(4, 2, places, MPI_INT, &type);
  return type;
}
static MPI_Datatype hindexed_block_tile(void) {
  const MPI_Aint places[] = {3, 30, 300, 444};
  MPI_Datatype type;
  MPI_Type_create_hindexed_block(4, 3, places, MPI_SHORT, &type);
  return type;
}
static MPI_Datatype struct_tile(void) {
  const int lengths[] = {1, 3, 2, 1};
  const MPI_Aint places[] = {8, 30, 60, 200};
  MPI_Datatype part = vector_tile();
  const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT, MPI_SHORT, part};
  MPI_Datatype type;
  MPI_Type_create_struct(4, lengths, places, types, &type);
  return replaced(type, part);
}
static MPI_Datatype nested_tile(void) {
  // A vector of resized structs of subarrays.
  const int sizes[] = {5, 4};
  const int parts[] = {2, 3};
  const int starts[] = {1, 1};
  MPI_Datatype array;
  MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_SHORT, &array);
  const int lengths[] = {1, 2};
  const MPI_Aint places[] = {0, 50};
  const MPI_Datatype types[] = {array, MPI_INT};
  MPI_Datatype record;
  MPI_Type_create_struct(2, lengths, places, types, &record);
  MPI_Type_free(&array);
  record = resized(record, 64);
  MPI_Datatype type;
  MPI_Type_vector(2, 2, 3, record, &type);
  MPI_Type_free(&record);
  MPI_Datatype copy;
  MPI_Type_dup(type, &copy);
  return replaced(copy, type);
}

static MPI_Datatype subarray(int order, int of_rank) {
  // Three dimensions, cut into slabs along the middle one.
  const int sizes[] = {6, 4 * ranks, 10};
  const int parts[] = {3, 4, 6};
  const int starts[] = {2, 4 * of_rank, 3};
  MPI_Datatype type;
  MPI_Type_create_subarray(3, sizes, parts, starts, order, MPI_INT, &type);
  return type;
}

static MPI_Datatype darray(const int* ways, const int* arguments, int order, int of_rank) {
  const int sizes[] = {7, 4 * ranks + 3};
  const int grid[] = {1, ranks};
  MPI_Datatype type;
  MPI_Type_create_darray(ranks, of_rank, 2, sizes, ways, arguments, grid, order, MPI_DOUBLE, &type);
  return type;
}

struct tile {
  const char* name;
  MPI_Datatype (*make)(void);             // repeated every kChunk * ranks bytes, the ranks' parts side by side
  MPI_Datatype (*make_for)(int of_rank);  // or: of a rank, as it is
  MPI_Datatype etype;
};

static MPI_Datatype subarray_c(int of_rank) { return subarray(MPI_ORDER_C, of_rank); }
static MPI_Datatype subarray_fortran(int of_rank) { return subarray(MPI_ORDER_FORTRAN, of_rank); }
static MPI_Datatype darray_block(int of_rank) {
  const int ways[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK};
  const int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
  return darray(ways, arguments, MPI_ORDER_C, of_rank);
}
static MPI_Datatype darray_cyclic(int of_rank) {
  const int ways[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
  const int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
  return darray(ways, arguments, MPI_ORDER_C, of_rank);
}
static MPI_Datatype darray_cyclic_2(int of_rank) {
  const int ways[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC};
  const int arguments[] = {3, 2};
  return darray(ways, arguments, MPI_ORDER_FORTRAN, of_rank);
}

static MPI_Datatype tile_of(const struct tile* tile, int of_rank, MPI_Offset* displacement) {
  if (tile->make_for != NULL) {
    *displacement = kDisplacement;
    return committed(tile->make_for(of_rank));
  }
  *displacement = kDisplacement + (MPI_Offset)of_rank * kChunk;
  return committed(resized(tile->make(), (MPI_Aint)kChunk * ranks));
}

// The first `tiles` repetitions of a rank, as file offsets in the order of the view. The caller frees them.
static long long* offsets_of(const struct tile* tile, int of_rank, int tiles, long long* bytes) {
  MPI_Offset displacement = 0;
  MPI_Datatype type = tile_of(tile, of_rank, &displacement);
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type, &lower, &extent);
  long long count = 0;
  long long* map = type_offsets(type, &count);
  *bytes = count * tiles;
  long long* offsets = new_bytes((long long)sizeof(long long) * *bytes);
  for (long long i = 0; i < *bytes; ++i) offsets[i] = view_offset(map, count, extent, displacement, i);
  free(map);
  MPI_Type_free(&type);
  return offsets;
}

// Memory in which every second byte belongs to the access.
static MPI_Datatype scattered(long long bytes) {
  MPI_Datatype type;
  MPI_Type_vector((int)bytes, 1, 2, MPI_BYTE, &type);
  return committed(type);
}

static void write_and_read(const struct tile* tile) {
  enum { kTiles = 3 };
  long long bytes = 0;
  long long* offsets = offsets_of(tile, rank, kTiles, &bytes);
  const long long file_bytes = kDisplacement + (long long)kChunk * ranks * kTiles + 4000LL * ranks;
  unsigned char* expected = new_bytes(file_bytes);
  fill_bytes(expected, file_bytes, 1, 0);

  MPI_File file = create_world("");
  if (rank == 0) OK(MPI_File_write_at(file, 0, expected, (int)file_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  barrier();
  MPI_Offset displacement = 0;
  MPI_Datatype type = tile_of(tile, rank, &displacement);
  OK(MPI_File_set_view(file, displacement, tile->etype, type, "native", MPI_INFO_NULL));

  // Two tiles collectively from scattered memory, the third by an explicit offset from plain memory.
  unsigned char* memory = new_bytes(2 * bytes);
  unsigned char* plain = new_bytes(bytes);
  const long long first = bytes / kTiles * 2;
  for (long long i = 0; i < bytes; ++i) memory[2 * i] = plain[i] = byte_at(2, offsets[i]);
  MPI_Datatype in_memory = scattered(first);
  MPI_Status status;
  OK(MPI_File_write_all(file, memory, 1, in_memory, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, first);
  int etype_bytes = 0;
  MPI_Type_size(tile->etype, &etype_bytes);
  MPI_Offset position = 0;
  OK(MPI_File_get_position(file, &position));
  CHECK_INT(position, first / etype_bytes);
  OK(MPI_File_write_at(file, position, plain + first, (int)(bytes - first), MPI_BYTE, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, bytes - first);
  OK(MPI_File_get_byte_offset(file, position, &position));
  CHECK_INT(position, offsets[first]);

  // Through the same view, then everything through none.
  unsigned char* got = new_bytes(2 * bytes);
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  OK(MPI_File_read_all(file, got, 1, in_memory, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, first);
  memset(memory + 2 * first, 0, (size_t)(2 * (bytes - first)));
  CHECK_BYTES(got, memory, 2 * bytes);
  OK(MPI_File_read_at(file, 0, got, (int)bytes, MPI_BYTE, &status));
  CHECK_BYTES(got, plain, bytes);
  barrier();
  for (int other = 0; other < ranks; ++other) {
    long long count = 0;
    long long* places = offsets_of(tile, other, kTiles, &count);
    for (long long i = 0; i < count; ++i) expected[places[i]] = byte_at(2, places[i]);
    free(places);
  }
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  unsigned char* all = new_bytes(file_bytes);
  OK(MPI_File_read_at_all(file, 0, all, (int)file_bytes, MPI_BYTE, &status));
  CHECK_BYTES(all, expected, file_bytes);
  OK(MPI_File_close(&file));
  CHECK_FILE_AT_ROOT(file_name(""), expected, file_bytes);
  MPI_Type_free(&in_memory);
  MPI_Type_free(&type);
  free(all);
  free(got);
  free(plain);
  free(memory);
  free(expected);
  free(offsets);
}

#define TILE_CASE(function, ...)                       \
  static void function(void) {                         \
    const struct tile tile = {#function, __VA_ARGS__}; \
    write_and_read(&tile);                             \
  }
TILE_CASE(of_contiguous, contiguous_tile, NULL, MPI_DOUBLE)
TILE_CASE(of_vector, vector_tile, NULL, MPI_DOUBLE)
TILE_CASE(of_hvector, hvector_tile, NULL, MPI_SHORT)
TILE_CASE(of_indexed, indexed_tile, NULL, MPI_DOUBLE)
TILE_CASE(of_hindexed, hindexed_tile, NULL, MPI_CHAR)
TILE_CASE(of_indexed_block, indexed_block_tile, NULL, MPI_INT)
TILE_CASE(of_hindexed_block, hindexed_block_tile, NULL, MPI_SHORT)
TILE_CASE(of_struct, struct_tile, NULL, MPI_BYTE)
TILE_CASE(of_nested, nested_tile, NULL, MPI_SHORT)
TILE_CASE(of_subarray_c, NULL, subarray_c, MPI_INT)
TILE_CASE(of_subarray_fortran, NULL, subarray_fortran, MPI_INT)
TILE_CASE(of_darray_block, NULL, darray_block, MPI_DOUBLE)
TILE_CASE(of_darray_cyclic, NULL, darray_cyclic, MPI_DOUBLE)
TILE_CASE(of_darray_cyclic_2, NULL, darray_cyclic_2, MPI_DOUBLE)

// --- etypes that are derived themselves ---

static void derived_etype(void) {
  MPI_File file = create_world("");
  MPI_Datatype etype;
  MPI_Datatype type;
  MPI_Type_contiguous(3, MPI_SHORT, &etype);
  MPI_Type_commit(&etype);
  MPI_Type_vector(2, 1, ranks, etype, &type);
  type = committed(resized(type, (MPI_Aint)6 * 2 * ranks));
  OK(MPI_File_set_view(file, 6 * rank, etype, type, "native", MPI_INFO_NULL));
  short mine[30];
  for (int i = 0; i < 30; ++i) mine[i] = (short)(100 * rank + i);
  OK(MPI_File_write_at_all(file, 0, mine, 5, etype, MPI_STATUS_IGNORE));
  OK(MPI_File_write_at_all(file, 5, mine + 15, 15, MPI_SHORT, MPI_STATUS_IGNORE));
  MPI_Offset position = 0;
  OK(MPI_File_seek(file, 7, MPI_SEEK_SET));
  short got[3] = {0};
  OK(MPI_File_read(file, got, 3, MPI_SHORT, MPI_STATUS_IGNORE));
  CHECK_BYTES(got, mine + 21, 6);
  OK(MPI_File_get_position(file, &position));
  CHECK_INT(position, 8);
  OK(MPI_File_seek(file, 0, MPI_SEEK_END));
  barrier();
  OK(MPI_File_get_byte_offset(file, 3, &position));
  CHECK_INT(position, (3 * ranks + rank) * 6);
  OK(MPI_File_close(&file));
  short* all = new_bytes(60LL * ranks);
  for (int piece = 0; piece < 10 * ranks; ++piece) {
    for (int i = 0; i < 3; ++i) all[3 * piece + i] = (short)(100 * (piece % ranks) + 3 * (piece / ranks) + i);
  }
  CHECK_FILE_AT_ROOT(file_name(""), all, 60LL * ranks);
  free(all);
  MPI_Type_free(&type);
  MPI_Type_free(&etype);
}

// --- get_view ---

static void get_view(void) {
  MPI_File file = create_world("");
  MPI_Datatype made = committed(vector_tile());
  MPI_Offset displacement = -1;
  MPI_Datatype etype;
  MPI_Datatype type;
  char datarep[MPI_MAX_DATAREP_STRING] = "";
  OK(MPI_File_get_view(file, &displacement, &etype, &type, datarep));
  CHECK_INT(displacement, 0);
  CHECK(etype == MPI_BYTE);
  CHECK(type == MPI_BYTE);
  CHECK_TEXT(datarep, "native");
  OK(MPI_File_set_view(file, 24, MPI_DOUBLE, made, "native", MPI_INFO_NULL));
  long long count = 0;
  long long count_got = 0;
  long long* expected = type_offsets(made, &count);
  MPI_Type_free(&made);  // the view lives on
  for (int turn = 0; turn < 2; ++turn) {
    OK(MPI_File_get_view(file, &displacement, &etype, &type, datarep));
    CHECK_INT(displacement, 24);
    CHECK(etype == MPI_DOUBLE);
    long long* got = type_offsets(type, &count_got);
    CHECK_INT(count_got, count);
    if (count_got == count) CHECK_BYTES(got, expected, count * (long long)sizeof *got);
    free(got);
    int integers = 0;
    int addresses = 0;
    int types = 0;
    int combiner = MPI_COMBINER_NAMED;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    CHECK(combiner != MPI_COMBINER_NAMED);
    OK(MPI_Type_free(&type));
  }
  free(expected);
  MPI_Aint extent = 0;
  OK(MPI_File_get_type_extent(file, MPI_DOUBLE, &extent));
  CHECK_INT(extent, sizeof(double));
  OK(MPI_File_close(&file));
}

// --- memory ---

// A type with a lower bound below 0, one with pieces before the buffer, and absolute addresses from MPI_BOTTOM.
static void unusual_memory(void) {
  MPI_File file = create_world("");
  unsigned char memory[256];
  fill_bytes(memory, sizeof memory, 3 + (unsigned)rank, 0);
  const int lengths[] = {3, 2};
  const MPI_Aint places[] = {-20, 5};
  MPI_Datatype pieces;
  MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &pieces);
  MPI_Datatype type;
  MPI_Type_create_resized(pieces, -24, 40, &type);
  type = committed(replaced(type, pieces));
  unsigned char expected[20];
  for (int i = 0; i < 3; ++i) {
    memcpy(expected + 5 * i, memory + 60 + 40 * i - 20, 3);
    memcpy(expected + 5 * i + 3, memory + 60 + 40 * i + 5, 2);
  }
  const MPI_Offset at = rank * 20;
  OK(MPI_File_write_at_all(file, at, memory + 60, 3, type, MPI_STATUS_IGNORE));
  const int two[] = {2, 3};
  MPI_Aint addresses[2];
  MPI_Get_address(memory + 200, &addresses[0]);
  MPI_Get_address(memory + 7, &addresses[1]);
  MPI_Datatype absolute;
  MPI_Type_create_hindexed(2, two, addresses, MPI_BYTE, &absolute);
  MPI_Type_commit(&absolute);
  OK(MPI_File_write_at(file, at + 15, MPI_BOTTOM, 1, absolute, MPI_STATUS_IGNORE));
  memcpy(expected + 15, memory + 200, 2);
  memcpy(expected + 17, memory + 7, 3);
  unsigned char got[20] = {0};
  OK(MPI_File_read_at(file, at, got, 20, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK_BYTES(got, expected, 20);
  // Back into the same places, nothing else touched.
  unsigned char copy[256];
  memcpy(copy, memory, sizeof copy);
  for (int i = 0; i < 3; ++i) {
    memset(memory + 60 + 40 * i - 20, 0, 3);
    memset(memory + 60 + 40 * i + 5, 0, 2);
  }
  memset(memory + 200, 0, 2);
  memset(memory + 7, 0, 3);
  OK(MPI_File_read_at_all(file, at, memory + 60, 3, type, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at(file, at + 15, MPI_BOTTOM, 1, absolute, MPI_STATUS_IGNORE));
  CHECK_BYTES(memory, copy, 256);
  OK(MPI_File_close(&file));
  MPI_Type_free(&type);
  MPI_Type_free(&absolute);
}

// Nothing to do for some or all ranks, in all the ways of saying so.
static void nothing(void) {
  MPI_File file = create_world("");
  MPI_Datatype empty;
  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Type_commit(&empty);
  int x = 10 + rank;
  MPI_Status status;
  const int idle = rank % 2 == 1;
  OK(MPI_File_write_at_all(file, 4 * rank, idle ? NULL : &x, idle ? 0 : 1, MPI_INT, &status));
  CHECK_ELEMENTS(&status, MPI_INT, idle ? 0 : 1);
  OK(MPI_File_write_all(file, NULL, 0, MPI_INT, &status));
  CHECK_ELEMENTS(&status, MPI_INT, 0);
  OK(MPI_File_write_at(file, 1000000, &x, 5, empty, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, 0);
  OK(MPI_File_read_at_all(file, 0, NULL, 0, MPI_DOUBLE, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, 0);
  OK(MPI_File_write_ordered(file, &x, 0, MPI_INT, &status));
  barrier();
  MPI_Offset size = 0;
  OK(MPI_File_get_size(file, &size));
  CHECK_INT(size, 4 * ((ranks - 1) / 2 * 2 + 1));
  OK(MPI_File_close(&file));
  MPI_Type_free(&empty);
}

// --- far away ---

static void far_away(void) {
  const MPI_Offset far = INT64_C(5) << 30;
  MPI_File file = create_world("");
  MPI_Datatype type;
  MPI_Type_create_resized(MPI_DOUBLE, 0, (MPI_Aint)3 << 30, &type);
  MPI_Type_commit(&type);
  const double mine[2] = {rank + 0.5, rank + 0.25};
  OK(MPI_File_set_view(file, far + 8 * rank, MPI_DOUBLE, type, "native", MPI_INFO_NULL));
  OK(MPI_File_write_all(file, mine, 2, MPI_DOUBLE, MPI_STATUS_IGNORE));
  double got[2] = {0};
  OK(MPI_File_read_at_all(file, 0, got, 2, MPI_DOUBLE, MPI_STATUS_IGNORE));
  CHECK_BYTES(got, mine, 16);
  MPI_Offset value = 0;
  OK(MPI_File_get_byte_offset(file, 2, &value));
  CHECK_INT(value, far + 8 * rank + (INT64_C(6) << 30));
  barrier();
  OK(MPI_File_get_size(file, &value));
  CHECK_INT(value, far + (INT64_C(3) << 30) + 8 * ranks);
  OK(MPI_File_close(&file));
  barrier();
  const int fd = open(file_name(""), O_RDONLY);
  CHECK(fd >= 0);
  CHECK_INT(lseek(fd, 0, SEEK_END), far + (INT64_C(3) << 30) + 8 * ranks);
  for (int i = 0; i < 2; ++i) {
    double there = 0;
    CHECK_INT(pread(fd, &there, 8, far + 8 * rank + (INT64_C(3) << 30) * i), 8);
    CHECK(there == mine[i]);
  }
  close(fd);
  MPI_Type_free(&type);
  barrier();
  if (rank == 0) remove(file_name(""));
}

const struct test_case kViewCases[] = {
    {"views.contiguous", of_contiguous, 1},
    {"views.vector", of_vector, 1},
    {"views.hvector", of_hvector, 1},
    {"views.indexed", of_indexed, 1},
    {"views.hindexed", of_hindexed, 1},
    {"views.indexed_block", of_indexed_block, 1},
    {"views.hindexed_block", of_hindexed_block, 1},
    {"views.struct", of_struct, 1},
    {"views.nested", of_nested, 1},
    {"views.subarray_c", of_subarray_c, 1},
    {"views.subarray_fortran", of_subarray_fortran, 1},
    {"views.darray_block", of_darray_block, 1},
    {"views.darray_cyclic", of_darray_cyclic, 1},
    {"views.darray_cyclic_2", of_darray_cyclic_2, 1},
    {"views.derived_etype", derived_etype, 1},
    {"views.get_view", get_view, 1},
    {"views.unusual_memory", unusual_memory, 1},
    {"views.nothing", nothing, 1},
    {"views.far_away", far_away, 1},
    {NULL, NULL, 0},
};
