#include "collective/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collective/test_access.h"

namespace spillway::collective {
namespace {

using extent::Extent;
using extent::ExtentList;
using extent::Random;

std::byte value_of_byte(std::int64_t i) { return static_cast<std::byte>(1 + i * 7 % 255); }

// One rank's access, and landings whose runs contain the bytes of it that lie in their bounds, and others.
struct Case {
  explicit Case(Random& random)
      : sample(random_view(random)),
        range{random.between(0, 200), random.between(1, 400)},
        origin(range.position - random.between(0, std::min<std::int64_t>(range.position, 20))),
        memory(random_memory(random, range.position - origin + range.length)),
        source{&sample.view, &memory.layout, origin, range},
        offsets(sample.offsets(range)) {
    make_landings(random);
  }

  void make_landings(Random& random) {
    std::vector<Extent> runs;
    for (const std::int64_t offset : offsets) runs.push_back({offset, 1 + (random.one_in(5) ? 3 : 0)});
    if (random.one_in(3)) runs.push_back({0, offsets.front() + 1});
    const ExtentList all = ExtentList::from_unsorted(std::move(runs));
    // Cut into landings, also in the middle of a run.
    std::int64_t at = all.bounds().offset;
    while (at < all.bounds().end()) {
      const Extent cut{at, random.one_in(4) ? all.bounds().end() - at : random.between(1, 120)};
      const ExtentList part = all.clipped(cut);
      if (!part.empty() && !random.one_in(8)) {  // sometimes one is missing: another round's
        lists.push_back(part);
        payloads.emplace_back(static_cast<std::size_t>(part.bytes()), std::byte{0});
      }
      at = cut.end();
    }
    for (std::size_t i = 0; i < lists.size(); ++i) {
      views.push_back({{&lists[i][0], lists[i].size()}, payloads[i].data()});
    }
  }
  // Where a file byte lies in the landings; null: in none.
  std::byte* place(std::int64_t offset) {
    for (std::size_t i = 0; i < lists.size(); ++i) {
      std::size_t done = 0;
      for (const Extent& run : lists[i]) {
        if (run.contains({offset, 1})) return payloads[i].data() + done + static_cast<std::size_t>(offset - run.offset);
        done += static_cast<std::size_t>(run.length);
      }
    }
    return nullptr;
  }
  std::byte& memory_at(std::size_t i) { return memory.at(range.position - origin + static_cast<std::int64_t>(i)); }

  SampleView sample;
  view::ViewRange range;
  std::int64_t origin;
  SampleMemory memory;
  Source source;
  std::vector<std::int64_t> offsets;
  std::vector<ExtentList> lists;
  std::vector<std::vector<std::byte>> payloads;
  std::vector<LandingView> views;
};

TEST(Placement, MovesExactlyTheBytesOfTheAccessToTheLandings) {
  extent::for_random_rounds(500, [](Random& random) {
    Case one(random);
    for (std::size_t i = 0; i < one.offsets.size(); ++i) one.memory_at(i) = value_of_byte(static_cast<std::int64_t>(i));
    std::vector<std::vector<std::byte>> expected = one.payloads;
    const auto before = one.payloads;
    for (std::size_t i = 0; i < one.offsets.size(); ++i) {
      if (std::byte* place = one.place(one.offsets[i])) *place = value_of_byte(static_cast<std::int64_t>(i));
    }
    expected = one.payloads;
    for (std::size_t i = 0; i < before.size(); ++i)
      std::copy(before[i].begin(), before[i].end(), one.payloads[i].begin());
    for (const LandingView& landing : one.views) move_bytes(one.source, landing, Direction::to_landing);
    ASSERT_EQ(one.payloads, expected);
  });
}

TEST(Placement, MovesExactlyTheBytesOfTheAccessFromTheLandings) {
  extent::for_random_rounds(500, [](Random& random) {
    Case one(random);
    for (std::vector<std::byte>& payload : one.payloads) {
      for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(random.between(1, 255));
    }
    std::vector<std::byte> expected = one.memory.bytes;
    for (std::size_t i = 0; i < one.offsets.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(&one.memory_at(i) - one.memory.bytes.data());
      if (const std::byte* place = one.place(one.offsets[i])) expected[at] = *place;
    }
    for (const LandingView& landing : one.views) move_bytes(one.source, landing, Direction::from_landing);
    ASSERT_EQ(one.memory.bytes, expected);
  });
}

TEST(Placement, PackingAndUnpackingFollowTheStream) {
  extent::for_random_rounds(500, [](Random& random) {
    Case one(random);
    std::vector<std::byte> expected;
    for (std::size_t i = 0; i < one.offsets.size(); ++i) {
      one.memory_at(i) = value_of_byte(static_cast<std::int64_t>(i));
      expected.push_back(one.memory_at(i));
    }
    std::vector<std::byte> buffer;
    const std::span<const std::byte> packed = pack(one.source, buffer);
    ASSERT_TRUE(std::equal(packed.begin(), packed.end(), expected.begin(), expected.end()));

    std::vector<std::byte> message(expected.size());
    for (std::byte& byte : message) byte = static_cast<std::byte>(random.between(0, 255));
    std::vector<std::byte> memory_expected = one.memory.bytes;
    for (std::size_t i = 0; i < message.size(); ++i) {
      memory_expected[static_cast<std::size_t>(&one.memory_at(i) - one.memory.bytes.data())] = message[i];
    }
    unpack(message, one.source);
    ASSERT_EQ(one.memory.bytes, memory_expected);
  });
}

TEST(Placement, ContiguousMemoryIsSentFromWhereItIs) {
  std::vector<std::byte> bytes(100);
  const view::FileView view;
  const view::MemoryLayout memory = view::MemoryLayout::contiguous_bytes(bytes.data(), 100);
  std::vector<std::byte> buffer;
  const std::span<const std::byte> packed = pack({&view, &memory, 10, {30, 50}}, buffer);
  EXPECT_EQ(packed.data(), bytes.data() + 20);
  EXPECT_EQ(packed.size(), 50U);
  EXPECT_TRUE(buffer.empty());
}

TEST(Placement, AScatterListPutsAMessageWhereMoveBytesWould) {
  extent::for_random_rounds(500, [](Random& random) {
    Case one(random);
    std::vector<comm::ReceivePiece> pieces;
    const auto pieces_max = static_cast<std::size_t>(random.one_in(2) ? 100000 : random.between(1, 60));
    if (!scatter_list(one.sample.view, one.range, one.views, pieces_max, pieces)) {
      ASSERT_LT(pieces_max, one.offsets.size()) << "no access has more pieces than bytes";
      return;
    }
    ASSERT_LE(pieces.size(), pieces_max);
    std::size_t piece = 0;
    std::size_t done = 0;
    for (const std::int64_t offset : one.offsets) {
      std::byte* place = one.place(offset);
      if (place == nullptr) continue;
      ASSERT_LT(piece, pieces.size());
      ASSERT_EQ(pieces[piece].data + done, place) << "file byte " << offset;
      if (++done == pieces[piece].bytes) {
        ++piece;
        done = 0;
      }
    }
    ASSERT_EQ(piece, pieces.size());
  });
}

}  // namespace
}  // namespace spillway::collective
