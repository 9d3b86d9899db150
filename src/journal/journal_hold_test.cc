#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "journal/test_journals.h"

namespace spillway::journal {
namespace {

TEST_F(JournalTest, WhatIsHeldIsThereForItsHolderAlone) {
  Journal& journal = add_journal(4 * kSegment);
  const std::uint32_t file = add_file(7);
  Journal::Hold hold;
  EXPECT_FALSE(journal.hold(3 * kSegment + 1, hold)) << "nothing would be left";
  ASSERT_TRUE(journal.hold(2 * kSegment + 1, hold));
  EXPECT_EQ(hold.segments, 3U);
  EXPECT_EQ(journal.free_bytes(), kSegment);
  Journal::Hold other;
  EXPECT_FALSE(journal.hold(1, other));

  // Others use up what is left and are refused then.
  const ExtentList others = list({{0, 3 * kSegment}});
  RunCursor cursor{&others, 0, 0};
  Result<Journal::Appended> fits = journal.append(cursor, {file, {}, INT64_MAX});
  ASSERT_TRUE(fits.ok());
  EXPECT_EQ(journal.append(cursor, {file, {}, INT64_MAX}).status().code(), Code::would_block);

  // The holder gets all of it, at once.
  const ExtentList mine = list({{10 * kSegment, 2 * kSegment + 1}});
  cursor = {&mine, 0, 0};
  std::vector<RecordId> ids;
  while (!cursor.at_end()) {
    Result<Journal::Appended> appended = journal.append(cursor, {file, {}, INT64_MAX, &hold});
    ASSERT_TRUE(appended.ok()) << appended.status().to_string();
    ids.push_back(appended->id);
  }

  // What was held and not used is everybody's again.
  journal.release(hold);
  for (const RecordId& id : ids) journal.abandon(id);
  ASSERT_TRUE(journal.hold(2 * kSegment, hold));
  journal.release(hold);
  EXPECT_EQ(journal.free_bytes(), 3 * kSegment);
  journal.abandon(fits->id);
  EXPECT_EQ(journal.free_bytes(), 4 * kSegment);
}

TEST_F(JournalTest, ColdPagesTakeBytesLikeWarmOnes) {
  Journal& journal = add_journal(4 * kSegment);
  const std::uint32_t file = add_file(7);
  Journal::Hold hold;
  ASSERT_TRUE(journal.hold(3 * kSegment, hold));  // more than what has its pages from the start
  const ExtentList others = list({{1 << 30, 2 * kSegment}});
  RunCursor cursor{&others, 0, 0};
  while (!cursor.at_end()) EXPECT_FALSE(journal.append(cursor, {file, {}, INT64_MAX, &hold})->cold);
  const ExtentList mine = list({{100, kSegment}});
  cursor = {&mine, 0, 0};
  Result<Journal::Appended> appended = journal.append(cursor, {file, {}, INT64_MAX, &hold});
  ASSERT_TRUE(appended.ok());
  EXPECT_TRUE(appended->cold);
  const std::vector<std::byte> first(1000, std::byte{'a'});
  const std::vector<std::byte> second(kSegment - 1000, std::byte{'b'});
  journal.place(*appended, 0, first);
  journal.warm(appended->id);
  journal.place(*appended, 1000, second);
  journal.commit(appended->id);
  EXPECT_EQ(seen(journal, file, {1098, 4}), "aabb");
  EXPECT_EQ(seen(journal, file, {98 + kSegment, 4}), "bb..");

  // The segment's next record finds it warm.
  journal.retire(appended->id);
  ASSERT_TRUE(journal.hold(kSegment, hold));
  cursor = {&mine, 0, 0};
  appended = journal.append(cursor, {file, {}, INT64_MAX, &hold});
  ASSERT_TRUE(appended.ok());
  EXPECT_FALSE(appended->cold);
  journal.abandon(appended->id);
}

}  // namespace
}  // namespace spillway::journal
