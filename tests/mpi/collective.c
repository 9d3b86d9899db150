// Collective transfers: patterns in which the ranks' pieces interleave, overlap, leave holes or end at odd places; calls one after the other to the
// same place, where the later wins; more bytes than a small buffer holds.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

// Pieces of `piece` bytes dealt out to the ranks in turn, each followed by `gap` bytes that nobody writes; `count` a rank, from `begin` on.
static void interleaved(long long begin, int piece, int gap, int count) {
  MPI_File file = create_world("");
  const int step = piece + gap;
  const long long file_bytes = begin + (long long)step * ranks * count + 77;
  unsigned char* expected = new_bytes(file_bytes);
  fill_bytes(expected, file_bytes, 1, 0);
  if (rank == 0) OK(MPI_File_write_at(file, 0, expected, (int)file_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  barrier();
  MPI_Datatype block;
  MPI_Datatype type;
  MPI_Type_contiguous(piece, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, (MPI_Aint)step * ranks, &type);
  MPI_Type_commit(&type);
  OK(MPI_File_set_view(file, begin + (long long)step * rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
  const int bytes = piece * count;
  unsigned char* mine = new_bytes(bytes);
  unsigned char* got = new_bytes(bytes);
  // Twice: the second replaces the first.
  for (unsigned turn = 2; turn <= 3; ++turn) {
    for (int i = 0; i < bytes; ++i)
      mine[i] = byte_at(turn, begin + (long long)step * rank + (long long)step * ranks * (i / piece) + i % piece);
    OK(MPI_File_write_at_all(file, 0, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  OK(MPI_File_read_at_all(file, 0, got, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK_BYTES(got, mine, bytes);
  for (long long at = begin; at < begin + (long long)step * ranks * count; ++at) {
    if ((at - begin) % step < piece) expected[at] = byte_at(3, at);
  }
  barrier();
  // Now each rank reads what another one wrote.
  const int other = (rank + 1) % ranks;
  OK(MPI_File_set_view(file, begin + (long long)step * other, MPI_BYTE, type, "native", MPI_INFO_NULL));
  OK(MPI_File_read_all(file, got, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int i = 0; i < bytes; ++i)
    mine[i] = byte_at(3, begin + (long long)step * other + (long long)step * ranks * (i / piece) + i % piece);
  CHECK_BYTES(got, mine, bytes);
  OK(MPI_File_close(&file));
  CHECK_FILE_AT_ROOT(file_name(""), expected, file_bytes);
  free(got);
  free(mine);
  free(expected);
  MPI_Type_free(&type);
  MPI_Type_free(&block);
}
static void small_pieces(void) { interleaved(13, 3, 0, 2000); }
static void small_pieces_with_holes(void) { interleaved(5, 8, 3, 1500); }
static void pieces_of_a_page(void) { interleaved(4096, 4096, 0, 40); }
static void large_pieces_with_holes(void) { interleaved(1000, 70001, 4000, 4); }

// More than the whole buffer when memory is small (run.py), in one call and in several.
static void much(void) {
  enum { kMiB = 1 << 20 };
  MPI_File file = create_world("");
  unsigned char* mine = new_bytes(3 * kMiB);
  unsigned char* got = new_bytes(3 * kMiB);
  const MPI_Offset at = (MPI_Offset)rank * 3 * kMiB;
  for (unsigned turn = 1; turn <= 2; ++turn) {
    fill_bytes(mine, 3 * kMiB, turn, at);
    OK(MPI_File_write_at_all(file, at, mine, 3 * kMiB, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  const int other = (rank + 1) % ranks;
  barrier();
  OK(MPI_File_read_at(file, (MPI_Offset)other * 3 * kMiB, got, 3 * kMiB, MPI_BYTE, MPI_STATUS_IGNORE));
  fill_bytes(mine, 3 * kMiB, 2, (MPI_Offset)other * 3 * kMiB);
  CHECK_BYTES(got, mine, 3 * kMiB);
  OK(MPI_File_close(&file));
  CHECK_INT(0, 0);
  barrier();
  if (rank == 0) {
    unsigned char* all = new_bytes(3LL * kMiB * ranks);
    fill_bytes(all, 3LL * kMiB * ranks, 2, 0);
    CHECK_FILE(file_name(""), all, 3LL * kMiB * ranks);
    free(all);
    remove(file_name(""));
  }
  free(got);
  free(mine);
}

// One rank has everything, or all the work lies with the last ranks, or each has another amount.
static void uneven(void) {
  MPI_File file = create_world("");
  const int total = 1000 * ranks * (ranks + 1) / 2;
  unsigned char* all = new_bytes(total);
  fill_bytes(all, total, 1, 0);
  OK(MPI_File_write_at_all(file, 0, all, rank == ranks - 1 ? total : 0, MPI_BYTE, MPI_STATUS_IGNORE));
  fill_bytes(all, total, 2, 0);
  const int begin = 1000 * rank * (rank + 1) / 2;
  OK(MPI_File_write_at_all(file, begin, all + begin, 1000 * (rank + 1), MPI_BYTE, MPI_STATUS_IGNORE));
  unsigned char* got = new_bytes(total);
  OK(MPI_File_read_at_all(file, 0, got, rank % 2 == 0 ? total : 0, MPI_BYTE, MPI_STATUS_IGNORE));
  if (rank % 2 == 0) CHECK_BYTES(got, all, total);
  OK(MPI_File_close(&file));
  CHECK_FILE_AT_ROOT(file_name(""), all, total);
  free(got);
  free(all);
}

// In one call several ranks write the same bytes: they all write the same values, so that the outcome is known.
static void overlapping(void) {
  enum { kBytes = 5000 };
  MPI_File file = create_world("");
  unsigned char* all = new_bytes(kBytes + 100LL * ranks);
  fill_bytes(all, kBytes + 100LL * ranks, 4, 0);
  OK(MPI_File_write_at_all(file, 100 * rank, all + 100 * rank, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  unsigned char* got = new_bytes(kBytes);
  OK(MPI_File_read_at_all(file, 50, got, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK_BYTES(got, all + 50, ranks > 1 ? kBytes : kBytes - 50);
  OK(MPI_File_close(&file));
  CHECK_FILE_AT_ROOT(file_name(""), all, kBytes + 100LL * (ranks - 1));
  free(got);
  free(all);
}

// Matching memory and view types on both sides, several elements, with a hole at the end of the type.
static void records(void) {
  struct record {
    char tag;
    double value;
    short last;
  };
  const int lengths[] = {1, 1, 1};
  const MPI_Aint places[] = {offsetof(struct record, tag), offsetof(struct record, value),
                             offsetof(struct record, last)};
  const MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT};
  MPI_Datatype tight;
  MPI_Datatype type;
  MPI_Type_create_struct(3, lengths, places, types, &tight);
  MPI_Type_create_resized(tight, 0, sizeof(struct record), &type);
  MPI_Type_commit(&type);
  enum { kRecords = 50 };
  struct record mine[kRecords];
  memset(mine, 0x11, sizeof mine);
  for (int i = 0; i < kRecords; ++i) {
    mine[i].tag = (char)i;
    mine[i].value = rank + i / 100.0;
    mine[i].last = (short)(rank * 100 + i);
  }
  MPI_File file = create_world("");
  // The gaps in the file stay holes, which read as 0.
  OK(MPI_File_set_view(file, (MPI_Offset)(sizeof mine) * rank, type, type, "native", MPI_INFO_NULL));
  OK(MPI_File_write_all(file, mine, kRecords, type, MPI_STATUS_IGNORE));
  struct record got[kRecords];
  memset(got, 0x22, sizeof got);
  MPI_Status status;
  OK(MPI_File_seek(file, 10, MPI_SEEK_SET));
  OK(MPI_File_read_all(file, got, 5, type, &status));
  CHECK_ELEMENTS(&status, type, 15);
  for (int i = 0; i < 5; ++i) {
    CHECK_INT(got[i].tag, mine[10 + i].tag);
    CHECK(got[i].value == mine[10 + i].value);
    CHECK_INT(got[i].last, mine[10 + i].last);
  }
  CHECK_INT(((unsigned char*)got)[1], 0x22);
  MPI_Offset position = 0;
  OK(MPI_File_get_position(file, &position));
  CHECK_INT(position, 15);
  OK(MPI_File_close(&file));
  unsigned char raw[sizeof mine];
  memset(raw, 0, sizeof raw);
  FILE* stream = fopen(file_name(""), "rb");
  CHECK(stream != NULL);
  if (stream != NULL) {
    fseek(stream, (long)(sizeof mine) * rank, SEEK_SET);
    CHECK(fread(raw, 1, sizeof raw, stream) >= sizeof raw - sizeof(struct record));
    fclose(stream);
    for (int i = 0; i < kRecords; ++i) {
      const unsigned char* at = raw + i * (int)sizeof(struct record);
      CHECK_INT(at[0], mine[i].tag);
      CHECK_INT(at[1], 0);
      CHECK(memcmp(at + places[1], &mine[i].value, sizeof(double)) == 0);
    }
  }
  barrier();
  MPI_Type_free(&type);
  MPI_Type_free(&tight);
}

const struct test_case kCollectiveCases[] = {
    {"collective.small_pieces", small_pieces, 1},
    {"collective.small_pieces_with_holes", small_pieces_with_holes, 1},
    {"collective.pieces_of_a_page", pieces_of_a_page, 1},
    {"collective.large_pieces_with_holes", large_pieces_with_holes, 1},
    {"collective.much", much, 1},
    {"collective.uneven", uneven, 1},
    {"collective.overlapping", overlapping, 1},
    {"collective.records", records, 1},
    {NULL, NULL, 0},
};
