// The format that docs/formats/journal-memory.md describes. Whoever changes a number here changes kVersion and the page.
#include "journal/layout.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace spillway::journal {
namespace {

TEST(Layout, IsThatOfItsVersion) {
  EXPECT_EQ(kVersion, 2U);
  EXPECT_EQ(kProcessesOffset, 20480U);
  EXPECT_EQ(kFilesOffset, 45056U);
  EXPECT_EQ(kPathsOffset, 1093632U);
  EXPECT_EQ(kArenaOffset, 68202496U);
  EXPECT_EQ(sizeof(NodeHeader), 17472U);
  EXPECT_EQ(offsetof(NodeHeader, nonce), 16U);
  EXPECT_EQ(offsetof(NodeHeader, totals), 408U);
  EXPECT_EQ(offsetof(NodeHeader, retired_event), 1024U);
  EXPECT_EQ(offsetof(NodeHeader, file_bucket), 1088U);
  EXPECT_EQ(sizeof(ProcessEntry), 24U);
  EXPECT_EQ(sizeof(FileSlot), 64U);
  EXPECT_EQ(offsetof(FileSlot, birth_ns), 24U);
  EXPECT_EQ(offsetof(FileSlot, next_sequence), 40U);
  EXPECT_EQ(offsetof(FileSlot, error), 56U);
  EXPECT_EQ(sizeof(FilePending), 24U);
  EXPECT_EQ(sizeof(SegmentDescriptor), 16U);
  EXPECT_EQ(sizeof(JournalHeader), 64U);
  EXPECT_EQ(offsetof(JournalHeader, data_offset), 56U);
  EXPECT_EQ(sizeof(RecordHeader), 128U);
  EXPECT_EQ(offsetof(RecordHeader, sequence), 32U);
  EXPECT_EQ(offsetof(RecordHeader, header_hash), 64U);
  EXPECT_EQ(offsetof(RecordHeader, state), 72U);
  EXPECT_EQ(offsetof(RecordHeader, payload_hash), 80U);
}

}  // namespace
}  // namespace spillway::journal
