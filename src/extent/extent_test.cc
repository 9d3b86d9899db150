#include "extent/extent.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "extent/interval_index.h"
#include "extent/test_random.h"

namespace spillway::extent {
namespace {

constexpr std::int64_t kSpace = 96;  // small, so that random extents meet often

// Far from zero on either side: nothing may depend on small offsets.
std::int64_t random_base(Random& random) {
  constexpr std::int64_t kBases[] = {0, -kSpace / 2, (std::int64_t{1} << 40) + 7, -(std::int64_t{1} << 52),
                                     INT64_MAX - kSpace};
  return kBases[random.between(0, 4)];
}

Extent random_extent(Random& random, std::int64_t base) {
  const std::int64_t begin = random.between(0, kSpace);
  return {base + begin, random.between(0, std::min<std::int64_t>(kSpace - begin, 24))};
}

using Bitmap = std::vector<bool>;

Bitmap bitmap_of(const ExtentList& list, std::int64_t base) {
  Bitmap bits(kSpace);
  for (const Extent& extent : list) {
    for (std::int64_t i = extent.offset; i < extent.end(); ++i) bits.at(static_cast<std::size_t>(i - base)) = true;
  }
  return bits;
}

Bitmap bitmap_of(const Extent& extent, std::int64_t base) {
  return bitmap_of(ExtentList::from_unsorted({extent}), base);
}

void expect_normal_form(const ExtentList& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_GT(list[i].length, 0);
    if (i > 0) {
      EXPECT_GT(list[i].offset, list[i - 1].end());
    }
  }
}

ExtentList random_list(Random& random, std::int64_t base) {
  std::vector<Extent> extents(static_cast<std::size_t>(random.between(0, 6)));
  for (Extent& extent : extents) extent = random_extent(random, base);
  return ExtentList::from_unsorted(extents);
}

TEST(ExtentList, CoalescesWhatTouchesOrOverlaps) {
  const ExtentList list = ExtentList::from_unsorted({{20, 5}, {0, 4}, {4, 6}, {22, 1}, {30, 0}, {8, 3}});
  EXPECT_EQ(list, ExtentList::from_unsorted({{0, 11}, {20, 5}}));
  EXPECT_EQ(list.size(), 2U);
  EXPECT_EQ(list.bytes(), 16);
  EXPECT_EQ(list.bounds(), (Extent{0, 25}));
}

TEST(ExtentList, AnswersForTheEmptySet) {
  const ExtentList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.bounds(), Extent{});
  EXPECT_EQ(list.find(0), 0U);
  EXPECT_FALSE(list.contains({0, 1}));
  EXPECT_TRUE(list.contains({0, 0}));
  EXPECT_TRUE(list.clipped({0, 10}).empty());
}

TEST(ExtentList, AgreesWithBitmaps) {
  for_random_rounds(2000, [](Random& random) {
    const std::int64_t base = random_base(random);
    const ExtentList a = random_list(random, base);
    const ExtentList b = random_list(random, base);
    const Extent window = random_extent(random, base);
    const Bitmap in_a = bitmap_of(a, base);
    const Bitmap in_b = bitmap_of(b, base);
    const Bitmap in_window = bitmap_of(window, base);
    Bitmap both(kSpace);
    Bitmap only_a(kSpace);
    Bitmap inside(kSpace);
    bool touched = false;
    bool covered = true;
    for (std::size_t i = 0; i < kSpace; ++i) {
      both[i] = in_a[i] || in_b[i];
      only_a[i] = in_a[i] && !in_b[i];
      inside[i] = in_a[i] && in_window[i];
      touched = touched || inside[i];
      covered = covered && (in_a[i] || !in_window[i]);
    }
    EXPECT_EQ(bitmap_of(a.united(b), base), both);
    EXPECT_EQ(bitmap_of(a.without(b), base), only_a);
    EXPECT_EQ(bitmap_of(a.clipped(window), base), inside);
    EXPECT_EQ(a.overlaps(window), touched);
    EXPECT_EQ(a.contains(window), covered);
    EXPECT_EQ(a.bytes(), std::count(in_a.begin(), in_a.end(), true));
    for (const ExtentList& list : {a, a.united(b), a.without(b), a.clipped(window)}) expect_normal_form(list);

    const std::size_t found = a.find(window.offset);
    if (found < a.size()) {
      EXPECT_GT(a[found].end(), window.offset);
    }
    if (found > 0) {
      EXPECT_LE(a[found - 1].end(), window.offset);
    }
  });
}

// A journal position: it moves with the cut, so byte `offset` of the file always maps to the same journal
// byte.
struct Shift {
  std::int64_t operator()(std::int64_t value, std::int64_t bytes) const { return value + bytes; }
};
using Index = IntervalIndex<std::int64_t, Shift>;

TEST(IntervalIndex, TheNewestWinsAndOlderEntriesAreCut) {
  Index index;
  index.insert({0, 100}, 1000);
  std::vector<Extent> replaced;
  index.insert({40, 20}, 5000, [&](const Index::Entry& entry) {
    replaced.push_back(entry.extent);
    EXPECT_EQ(entry.value, 1040);
  });
  EXPECT_EQ(replaced, (std::vector<Extent>{{40, 20}}));
  std::vector<Extent> extents;
  std::vector<std::int64_t> values;
  index.for_each({10, 80}, [&](const Index::Entry& entry) {
    extents.push_back(entry.extent);
    values.push_back(entry.value);
  });
  EXPECT_EQ(extents, (std::vector<Extent>{{10, 30}, {40, 20}, {60, 30}}));
  EXPECT_EQ(values, (std::vector<std::int64_t>{1010, 5000, 1060}));
  EXPECT_EQ(index.end_offset(), 100);
}

TEST(IntervalIndex, AgreesWithOneValuePerByte) {
  for_random_rounds(500, [](Random& random) {
    const std::int64_t base = random_base(random);
    Index index;
    std::vector<std::optional<std::int64_t>> bytes(kSpace);  // the value of the entry part that begins at this byte
    const auto check_gone = [&](const Index::Entry& entry) {
      for (std::int64_t i = 0; i < entry.extent.length; ++i) {
        auto& byte = bytes.at(static_cast<std::size_t>(entry.extent.offset + i - base));
        EXPECT_EQ(byte, entry.value + i);
        byte.reset();
      }
    };
    for (int step = 0; step < 20; ++step) {
      const Extent extent = random_extent(random, base);
      const std::int64_t value = random.between(0, 1 << 20) * 1000;
      const bool odd_only = random.one_in(2);
      const auto is_odd = [&](std::int64_t v) { return !odd_only || (v / 1000) % 2 == 1; };
      switch (random.between(0, 3)) {
        case 0:
          index.erase_if(extent, check_gone, is_odd);
          break;
        case 1:
          index.erase(extent, check_gone);
          break;
        default:
          index.insert(extent, value, check_gone);
          for (std::int64_t i = 0; i < extent.length; ++i) {
            bytes.at(static_cast<std::size_t>(extent.offset + i - base)) = value + i;
          }
      }
      std::vector<std::optional<std::int64_t>> seen(kSpace);
      const Extent window = random.one_in(3) ? random_extent(random, base) : Extent{base, kSpace};
      bool any = false;
      index.for_each(window, [&](const Index::Entry& entry) {
        any = true;
        EXPECT_TRUE(window.contains(entry.extent));
        for (std::int64_t i = 0; i < entry.extent.length; ++i) {
          seen.at(static_cast<std::size_t>(entry.extent.offset + i - base)) = entry.value + i;
        }
      });
      EXPECT_EQ(index.overlaps(window), any);
      for (std::int64_t i = 0; i < kSpace; ++i) {
        const auto k = static_cast<std::size_t>(i);
        EXPECT_EQ(seen[k], window.contains({base + i, 1}) ? bytes[k] : std::nullopt);
      }
    }
  });
}

}  // namespace
}  // namespace spillway::extent
