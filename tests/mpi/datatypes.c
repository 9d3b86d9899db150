// Datatypes taken apart rightly: random nested types, in memory and as file types; the oracle is MPI_Pack of the same type. Every rank has its own
// seeds and its own file; a failure prints the seed. Also the predefined types with gaps, and those that MPI makes rarely. The random types have
// no parts without bytes: MPICH 5.0.2 divides by zero when it packs some of those. degenerate() has them, with an oracle of its own.
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "run.h"

enum { kTypes = 150, kDepthMax = 3, kBytesMax = 6000 };

static uint64_t state;
static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * UINT64_C(0x2545f4914f6cdd1d);
}
static int below(int limit) { return (int)((next() >> 33) % (uint64_t)limit); }

static MPI_Aint extent_of(MPI_Datatype type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type, &lower, &extent);
  return extent;
}
// One past the last byte of its data.
static MPI_Aint end_of(MPI_Datatype type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_true_extent(type, &lower, &extent);
  return lower + extent;
}

static MPI_Datatype basic(void) {
  const MPI_Datatype types[] = {MPI_BYTE, MPI_CHAR, MPI_SHORT, MPI_INT, MPI_FLOAT, MPI_DOUBLE, MPI_INT64_T};
  MPI_Datatype type;
  MPI_Type_dup(types[below(7)], &type);
  return type;
}

static MPI_Datatype random_type(int depth, int ascending);

// Displacements for `count` blocks in units of `unit` children: ascending without overlap, or anywhere.
static void places_of(int count, const int* lengths, MPI_Aint* places, int ascending) {
  MPI_Aint at = 0;
  for (int i = 0; i < count; ++i) {
    places[i] = ascending ? at + below(3) : below(12) - 4;
    at = places[i] + lengths[i];
  }
}

static MPI_Datatype random_indexed(MPI_Datatype part, int ascending) {
  int lengths[4];
  int units[4];
  MPI_Aint places[4];
  const int count = 1 + below(4);
  const int equal = below(2);
  for (int i = 0; i < count; ++i) lengths[i] = equal ? (i == 0 ? 1 + below(3) : lengths[0]) : 1 + below(3);
  places_of(count, lengths, places, ascending);
  const MPI_Aint extent = extent_of(part);
  const int in_bytes = below(2);
  for (int i = 0; i < count; ++i) {
    units[i] = (int)places[i];
    places[i] *= extent;
  }
  MPI_Datatype type;
  if (equal && in_bytes) {
    MPI_Type_create_hindexed_block(count, lengths[0], places, part, &type);
  } else if (equal) {
    MPI_Type_create_indexed_block(count, lengths[0], units, part, &type);
  } else if (in_bytes) {
    MPI_Type_create_hindexed(count, lengths, places, part, &type);
  } else {
    MPI_Type_indexed(count, lengths, units, part, &type);
  }
  return type;
}

static MPI_Datatype random_array(MPI_Datatype part) {
  int sizes[3], parts[3], starts[3];
  int ways[3], arguments[3], grid[3];
  const int dims = 1 + below(3);
  const int order = below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  int processes = 1;
  for (int i = 0; i < dims; ++i) {
    sizes[i] = 1 + below(5);
    parts[i] = 1 + below(sizes[i]);
    starts[i] = below(sizes[i] - parts[i] + 1);
    const int kinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    ways[i] = kinds[below(3)];
    grid[i] = ways[i] == MPI_DISTRIBUTE_NONE ? 1 : 1 + below(3);
    const int least = ways[i] == MPI_DISTRIBUTE_BLOCK ? (sizes[i] + grid[i] - 1) / grid[i] : 1;
    arguments[i] = below(2) ? MPI_DISTRIBUTE_DFLT_DARG : least + below(2);
    processes *= grid[i];
  }
  MPI_Datatype type;
  if (below(2)) {
    MPI_Type_create_subarray(dims, sizes, parts, starts, order, part, &type);
  } else {
    MPI_Type_create_darray(processes, below(processes), dims, sizes, ways, arguments, grid, order, part, &type);
    int size = 0;
    MPI_Type_size(type, &size);
    if (size == 0) {  // a process without a part
      MPI_Type_free(&type);
      MPI_Type_dup(part, &type);
    }
  }
  return type;
}

static MPI_Datatype random_struct(int depth, int ascending) {
  MPI_Datatype parts[3];
  int lengths[3];
  MPI_Aint places[3];
  const int count = 1 + below(3);
  MPI_Aint at = 0;
  for (int i = 0; i < count; ++i) {
    parts[i] = random_type(depth - 1, ascending);
    lengths[i] = 1 + below(2);
    places[i] = ascending ? at + below(9) : below(100) - 50;
    at = places[i] + (lengths[i] - 1) * extent_of(parts[i]) + end_of(parts[i]);
  }
  MPI_Datatype type;
  MPI_Type_create_struct(count, lengths, places, parts, &type);
  for (int i = 0; i < count; ++i) MPI_Type_free(&parts[i]);
  return type;
}

// Ascending: fit for a file type that is written through, and to be repeated: pieces in order, without overlap, from 0 on.
static MPI_Datatype random_type(int depth, int ascending) {
  if (depth == 0) return basic();
  MPI_Datatype type;
  if (below(4) == 0) {
    type = random_struct(depth, ascending);
  } else {
    MPI_Datatype part = random_type(depth - 1, ascending);
    const int length = 1 + below(3);
    int stride = ascending ? length + below(4) : below(9) - 3;
    if (stride * extent_of(part) == -1) stride = 1;  // Open MPI 5.0.11 takes -1 byte for "one after the other"
    switch (below(6)) {
      case 0:
        MPI_Type_contiguous(1 + below(4), part, &type);
        break;
      case 1:
        MPI_Type_vector(1 + below(3), length, stride, part, &type);
        break;
      case 2: {
        MPI_Aint bytes = stride * extent_of(part) + (ascending ? below(7) : below(7) - 3);
        if (bytes == -1) bytes = 1;
        MPI_Type_create_hvector(1 + below(3), length, bytes, part, &type);
        break;
      }
      case 3:
        type = random_array(part);
        break;
      case 4:
        MPI_Type_dup(part, &type);
        break;
      default:
        type = random_indexed(part, ascending);
    }
    MPI_Type_free(&part);
  }
  if (!ascending && below(3) > 0) return type;
  MPI_Datatype sized;
  const MPI_Aint lower = ascending ? 0 : below(40) - 20;
  const MPI_Aint extent = ascending ? end_of(type) + below(10) : below(80) + 1;
  MPI_Type_create_resized(type, lower, extent, &sized);
  MPI_Type_free(&type);
  return sized;
}

// With some bytes, and not too many.
static MPI_Datatype usable_type(unsigned seed, int ascending) {
  state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
  for (;;) {
    MPI_Datatype type = random_type(1 + below(kDepthMax), ascending);
    int size = 0;
    MPI_Aint lower = 0;
    MPI_Aint span = 0;
    MPI_Type_size(type, &size);
    MPI_Type_get_true_extent(type, &lower, &span);
    if (size > 0 && size <= kBytesMax && span <= 16 * kBytesMax && extent_of(type) > 0) {
      MPI_Type_commit(&type);
      return type;
    }
    MPI_Type_free(&type);
  }
}

static void say_seed(int before, unsigned seed) {
  extern int failures;
  if (failures > before) fprintf(stderr, "rank %d: that was the type of seed %u\n", rank, seed);
}

static MPI_File own_file(void) {
  char name[32];
  snprintf(name, sizeof name, "%d", rank);
  remove(file_name(name));
  MPI_File file = MPI_FILE_NULL;
  OK(MPI_File_open(MPI_COMM_SELF, file_name(name), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  if (file == MPI_FILE_NULL) give_up("no file");
  return file;
}

static int overlaps(MPI_Datatype type, int count) {
  long long bytes = 0;
  long long* offsets = type_offsets(type, &bytes);
  long long low = 0;
  long long high = 0;
  for (long long i = 0; i < bytes; ++i) {
    if (offsets[i] < low) low = offsets[i];
    if (offsets[i] > high) high = offsets[i];
  }
  const long long span = high - low + 1 + (count - 1) * extent_of(type);
  unsigned char* used = new_bytes(span);
  int twice = 0;
  for (int k = 0; k < count; ++k) {
    for (long long i = 0; i < bytes; ++i) twice |= used[offsets[i] - low + k * extent_of(type)]++ != 0;
  }
  free(used);
  free(offsets);
  return twice;
}

static void one_in_memory(MPI_File file, unsigned seed) {
  MPI_Datatype type = usable_type(seed, 0);
  const int count = 1 + below(3);
  MPI_Aint lower = 0;
  MPI_Aint span = 0;
  int size = 0;
  MPI_Type_get_true_extent(type, &lower, &span);
  MPI_Type_size(type, &size);
  const long long bytes = (long long)size * count;
  const long long all = span + (count - 1) * extent_of(type);
  unsigned char* memory = new_bytes(all);
  unsigned char* packed = new_bytes(bytes);
  unsigned char* got = new_bytes(bytes);
  fill_bytes(memory, all, seed, 0);
  int position = 0;
  MPI_Pack(memory - lower, count, type, packed, (int)bytes, &position, MPI_COMM_SELF);
  const MPI_Offset at = below(1000);
  OK(MPI_File_write_at(file, at, memory - lower, count, type, MPI_STATUS_IGNORE));
  MPI_Status status;
  OK(MPI_File_read_at(file, at, got, (int)bytes, MPI_BYTE, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, bytes);
  CHECK_BYTES(got, packed, bytes);
  if (!overlaps(type, count)) {
    // And back: only the bytes of the type are touched.
    unsigned char* back = new_bytes(all);
    memset(back, 0xee, (size_t)all);
    unsigned char* expected = new_bytes(all);
    memset(expected, 0xee, (size_t)all);
    position = 0;
    MPI_Unpack(packed, (int)bytes, &position, expected - lower, count, type, MPI_COMM_SELF);
    OK(MPI_File_read_at(file, at, back - lower, count, type, &status));
    CHECK_BYTES(back, expected, all);
    free(expected);
    free(back);
  }
  free(got);
  free(packed);
  free(memory);
  MPI_Type_free(&type);
}

static void random_in_memory(void) {
  extern int failures;
  MPI_File file = own_file();
  for (unsigned i = 0; i < kTypes; ++i) {
    const int before = failures;
    const unsigned seed = 1000 * (unsigned)rank + i;
    one_in_memory(file, seed);
    say_seed(before, seed);
  }
  OK(MPI_File_close(&file));
}

static void one_in_file(MPI_File file, unsigned seed) {
  MPI_Datatype type = usable_type(seed, 1);
  long long size = 0;
  long long* offsets = type_offsets(type, &size);
  const long long extent = extent_of(type);
  const MPI_Offset displacement = below(100);
  const MPI_Offset begin = below((int)size + 1);
  const long long bytes = 1 + below(2 * (int)size);
  const long long file_bytes = view_offset(offsets, size, extent, displacement, begin + bytes - 1) + 1 + below(50);
  unsigned char* expected = new_bytes(file_bytes);
  unsigned char* memory = new_bytes(bytes);
  unsigned char* got = new_bytes(file_bytes);
  fill_bytes(expected, file_bytes, seed, 0);
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  OK(MPI_File_set_size(file, 0));
  OK(MPI_File_write_at(file, 0, expected, (int)file_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  for (long long i = 0; i < bytes; ++i) {
    memory[i] = byte_at(seed + 1, i);
    expected[view_offset(offsets, size, extent, displacement, begin + i)] = memory[i];
  }
  OK(MPI_File_set_view(file, displacement, MPI_BYTE, type, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at(file, begin, memory, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at(file, begin, got, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK_BYTES(got, memory, bytes);
  MPI_Offset place = 0;
  OK(MPI_File_get_byte_offset(file, begin + bytes - 1, &place));
  CHECK_INT(place, view_offset(offsets, size, extent, displacement, begin + bytes - 1));
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  MPI_Status status;
  OK(MPI_File_read_at(file, 0, got, (int)file_bytes, MPI_BYTE, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, file_bytes);
  CHECK_BYTES(got, expected, file_bytes);
  free(got);
  free(memory);
  free(expected);
  free(offsets);
  MPI_Type_free(&type);
}

static void random_in_file(void) {
  extern int failures;
  MPI_File file = own_file();
  for (unsigned i = 0; i < kTypes; ++i) {
    const int before = failures;
    const unsigned seed = 500000 + 1000 * (unsigned)rank + i;
    one_in_file(file, seed);
    say_seed(before, seed);
  }
  OK(MPI_File_close(&file));
}

// Parts without bytes.
static void degenerate(void) {
  MPI_File file = own_file();
  MPI_Datatype none, no_blocks, indexed, type;
  const int lengths[] = {0, 2, 0, 1};
  const int places[] = {9, 3, 0, 7};
  MPI_Type_contiguous(0, MPI_INT, &none);
  MPI_Type_vector(4, 0, 3, MPI_DOUBLE, &no_blocks);
  MPI_Type_indexed(4, lengths, places, MPI_SHORT, &indexed);
  const int counts[] = {3, 1, 2, 0};
  const MPI_Aint at[] = {100, 2, 40, 0};
  const MPI_Datatype parts[] = {none, indexed, no_blocks, MPI_DOUBLE};
  MPI_Type_create_struct(4, counts, at, parts, &type);
  MPI_Type_commit(&type);
  MPI_Type_commit(&none);
  unsigned char memory[64];
  unsigned char got[16];
  fill_bytes(memory, sizeof memory, 8, 0);
  MPI_Status status;
  OK(MPI_File_write_at(file, 0, memory, 1, type, &status));
  CHECK_ELEMENTS(&status, MPI_SHORT, 3);
  OK(MPI_File_read_at(file, 0, got, 16, MPI_BYTE, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, 6);
  CHECK_BYTES(got, memory + 2 + 6, 4);
  CHECK_BYTES(got + 4, memory + 2 + 14, 2);
  OK(MPI_File_write_at(file, 100, memory, 3, none, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, 0);
  MPI_Offset size = 0;
  OK(MPI_File_get_size(file, &size));
  CHECK_INT(size, 6);
  MPI_Type_free(&type);
  MPI_Type_free(&indexed);
  MPI_Type_free(&no_blocks);
  MPI_Type_free(&none);
  OK(MPI_File_close(&file));
}

// The pairs for MPI_MINLOC have gaps that are no data; an etype of them counts whole pairs.
static void pairs(void) {
  MPI_File file = own_file();
  const MPI_Datatype types[] = {MPI_SHORT_INT, MPI_DOUBLE_INT, MPI_LONG_INT,
                                MPI_FLOAT_INT, MPI_2INT,       MPI_LONG_DOUBLE_INT};
  for (int i = 0; i < 6; ++i) {
    enum { kCount = 3 };
    unsigned char memory[kCount * 64];
    unsigned char packed[kCount * 64];
    unsigned char got[kCount * 64];
    fill_bytes(memory, sizeof memory, (unsigned)i, 0);
    int size = 0;
    int position = 0;
    MPI_Type_size(types[i], &size);
    MPI_Pack(memory, kCount, types[i], packed, sizeof packed, &position, MPI_COMM_SELF);
    MPI_Status status;
    OK(MPI_File_write_at(file, 0, memory, kCount, types[i], &status));
    int count = 0;
    MPI_Get_count(&status, types[i], &count);
    CHECK_INT(count, kCount);
    OK(MPI_File_read_at(file, 0, got, kCount * size, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_BYTES(got, packed, kCount * size);
    memset(got, 0, sizeof got);
    OK(MPI_File_read_at(file, 0, got, kCount, types[i], MPI_STATUS_IGNORE));
    position = 0;
    unsigned char again[kCount * 64];
    MPI_Pack(got, kCount, types[i], again, sizeof again, &position, MPI_COMM_SELF);
    CHECK_BYTES(again, packed, kCount * size);
  }
  OK(MPI_File_close(&file));
}

// Types that stand for a precision, and (with MPI-4.1) for a pair of value and index.
static void made_by_mpi(void) {
  MPI_File file = own_file();
  MPI_Datatype type;
  double x[2] = {1.5 + rank, -3};
  double got[2] = {0, 0};
  OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type));
  OK(MPI_File_write_at(file, 0, x, 2, type, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at(file, 0, got, 2, MPI_DOUBLE, MPI_STATUS_IGNORE));
  CHECK_BYTES(got, x, sizeof x);
  MPI_Datatype outer;
  OK(MPI_Type_contiguous(2, type, &outer));
  MPI_Type_commit(&outer);
  OK(MPI_File_write_at(file, 16, x, 1, outer, MPI_STATUS_IGNORE));
  memset(got, 0, sizeof got);
  OK(MPI_File_read_at(file, 16, got, 2, MPI_DOUBLE, MPI_STATUS_IGNORE));
  CHECK_BYTES(got, x, sizeof x);
  MPI_Type_free(&outer);
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  const MPI_Datatype values[] = {MPI_DOUBLE, MPI_FLOAT, MPI_INT64_T, MPI_SHORT};
  const MPI_Datatype indices[] = {MPI_INT, MPI_INT64_T, MPI_INT64_T, MPI_INT};
  for (int i = 0; i < 4; ++i) {
    OK(MPI_Type_get_value_index(values[i], indices[i], &type));
    if (type == MPI_DATATYPE_NULL) continue;
    unsigned char memory[96], packed[96], back[96];
    fill_bytes(memory, sizeof memory, 77, 0);
    int position = 0;
    int size = 0;
    MPI_Type_size(type, &size);
    MPI_Pack(memory, 3, type, packed, sizeof packed, &position, MPI_COMM_SELF);
    OK(MPI_File_write_at(file, 0, memory, 3, type, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 0, back, 3 * size, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_BYTES(back, packed, 3 * size);
  }
#endif
  OK(MPI_File_close(&file));
}

#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
// Types and transfers with large counts: the same bytes as with small ones.
static void large_counts(void) {
  MPI_File file = own_file();
  MPI_Datatype vector, part, type;
  const MPI_Count lengths[] = {1, 2};
  const MPI_Count places[] = {6, 100};
  const MPI_Count sizes[] = {4, 6};
  const MPI_Count parts[] = {2, 3};
  const MPI_Count starts[] = {1, 2};
  OK(MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_BYTE, &part));
  OK(MPI_Type_create_hindexed_c(2, lengths, places, part, &vector));
  const MPI_Datatype two[] = {vector, MPI_SHORT};
  const MPI_Count at[] = {3, 300};
  OK(MPI_Type_create_struct_c(2, lengths, at, two, &type));
  MPI_Type_commit(&type);
  unsigned char memory[512], packed[512], got[512];
  fill_bytes(memory, sizeof memory, 5, 0);
  MPI_Count size = 0;
  int position = 0;
  MPI_Type_size_c(type, &size);
  MPI_Pack(memory, 1, type, packed, sizeof packed, &position, MPI_COMM_SELF);
  OK(MPI_File_write_at_c(file, 7, memory, 1, type, MPI_STATUS_IGNORE));
  MPI_Status status;
  OK(MPI_File_read_at_c(file, 7, got, size, MPI_BYTE, &status));
  MPI_Count elements = 0;
  MPI_Get_elements_c(&status, MPI_BYTE, &elements);
  CHECK_INT(elements, size);
  CHECK_BYTES(got, packed, size);
  MPI_Type_free(&type);
  MPI_Type_free(&vector);
  MPI_Type_free(&part);
  // More bytes than an int counts, few of them real: everything in one place of memory.
  MPI_Datatype far;
  const MPI_Count ends[] = {0, (MPI_Count)INT_MAX + 8};
  OK(MPI_Type_create_hindexed_block_c(2, 4, ends, MPI_BYTE, &far));
  MPI_Type_commit(&far);
  OK(MPI_File_set_view(file, rank, MPI_BYTE, far, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at_c(file, 0, "abcdefgh", 8, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  OK(MPI_File_read_at(file, rank + (MPI_Offset)INT_MAX + 8, got, 100, MPI_BYTE, &status));
  CHECK_ELEMENTS(&status, MPI_BYTE, 4);
  CHECK_BYTES(got, "efgh", 4);
  MPI_Type_free(&far);
  OK(MPI_File_set_size(file, 0));
  OK(MPI_File_close(&file));
}
#endif

const struct test_case kDatatypeCases[] = {
    {"datatypes.random_in_memory", random_in_memory, 1},
    {"datatypes.random_in_file", random_in_file, 1},
    {"datatypes.degenerate", degenerate, 1},
    {"datatypes.pairs", pairs, 1},
    {"datatypes.made_by_mpi", made_by_mpi, 1},
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
    {"datatypes.large_counts", large_counts, 1},
#endif
    {NULL, NULL, 0},
};
