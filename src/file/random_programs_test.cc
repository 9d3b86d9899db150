// Random programs of MPI-IO operations over ranks as threads, compared with a byte array.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "file/test_cluster.h"

namespace spillway::file {
namespace {

unsigned long test_seed() {
  const char* text = std::getenv("SPILLWAY_TEST_SEED");
  return text != nullptr ? std::strtoul(text, nullptr, 10) : 20261120;
}

std::string name_of_shape(const Shape& shape) {
  std::string name = std::to_string(shape.nodes) + "x" + std::to_string(shape.ranks_per_node);
  name += shape.stage == base::Stage::none ? "_none" : "_memory" + std::to_string(shape.memory_bytes);
  if (shape.algorithm == base::AlgorithmChoice::two_phase) name += "_two_phase";
  if (shape.algorithm == base::AlgorithmChoice::individual) name += "_individual";
  return name;
}

class EveryShape : public testing::TestWithParam<Shape> {};

// A random step of the program that all ranks run: known to all from the seed.
struct Step {
  enum Kind { write_all, read_all, write_one, read_one, sync, set_size, reopen, set_view, kinds } kind = write_all;
  // Per rank: the view in force and the range of the access, in view bytes.
  std::vector<view::ViewRange> ranges;
  std::int64_t size = 0;
  int writer = 0;
  unsigned fill = 0;
};

std::byte byte_at(unsigned fill, int rank, std::int64_t i) {
  return static_cast<std::byte>((fill * 131 + static_cast<unsigned>(rank) * 17 + static_cast<unsigned>(i) * 7 + 1) &
                                0xff);
}

// Disjoint views for all ranks: one global pattern of blocks dealt to the ranks, with or without holes.
std::vector<view::FileView> random_views(std::mt19937_64& random, int ranks) {
  std::vector<view::FileView> views;
  const std::int64_t block = std::int64_t{1} << (random() % 14);
  const std::int64_t blocks_per_rank = 1 + static_cast<std::int64_t>(random() % 4);
  const std::int64_t gap = random() % 3 == 0 ? static_cast<std::int64_t>(random() % 50) : 0;
  const std::int64_t displacement = static_cast<std::int64_t>(random() % 100);
  const bool contiguous_ranks = random() % 4 == 0;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::int64_t> displacements;
    for (std::int64_t i = 0; i < blocks_per_rank; ++i) {
      const std::int64_t index = contiguous_ranks ? rank * blocks_per_rank + i : i * ranks + rank;
      displacements.push_back(index * (block + gap));
    }
    const extent::Pattern filetype = extent::Pattern::list(displacements, extent::Pattern::block(0, block));
    const std::int64_t tile = blocks_per_rank * ranks * (block + gap);
    Result<view::FileView> view = view::FileView::make(displacement, 1, filetype, tile, true);
    EXPECT_TRUE(view.ok()) << view.status().to_string();
    views.push_back(std::move(view).value());
  }
  return views;
}

// The file as it must be.
class Model {
 public:
  void write(const view::FileView& view, const view::ViewRange& range, unsigned fill, int rank) {
    for (std::int64_t i = 0; i < range.length; ++i) {
      const auto offset = static_cast<std::size_t>(view.file_offset(range.position + i));
      if (offset >= bytes_.size()) bytes_.resize(offset + 1);
      bytes_[offset] = byte_at(fill, rank, i);
    }
  }
  [[nodiscard]] std::vector<std::byte> read(const view::FileView& view, const view::ViewRange& range) const {
    std::vector<std::byte> out;
    for (std::int64_t i = 0; i < range.length; ++i) {
      const auto offset = static_cast<std::size_t>(view.file_offset(range.position + i));
      if (offset >= bytes_.size()) break;
      out.push_back(bytes_[offset]);
    }
    return out;
  }
  void resize(std::int64_t bytes) { bytes_.resize(static_cast<std::size_t>(bytes)); }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }
  [[nodiscard]] std::string text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  std::vector<std::byte> bytes_;
};

// Writes or reads through memory that is itself scattered, now and then.
struct Buffer {
  Buffer(std::int64_t length, bool scattered)
      : bytes(static_cast<std::size_t>(scattered ? 3 * length + 3 : length + 1)) {
    if (scattered) {
      layout.base = bytes.data() + 1;
      layout.pattern = extent::Pattern::block(0, 1);
      layout.tile_extent = 3;
    } else {
      layout = view::MemoryLayout::contiguous_bytes(bytes.data(), length);
    }
    stride = scattered ? 3 : 1;
  }
  std::byte& at(std::int64_t i) { return layout.base[i * stride]; }
  std::vector<std::byte> bytes;
  view::MemoryLayout layout;
  std::int64_t stride;
};

TEST_P(EveryShape, RandomProgramsAgainstAByteArray) {
  const unsigned long seed = test_seed();
  SCOPED_TRACE("SPILLWAY_TEST_SEED=" + std::to_string(seed));
  Cluster cluster(GetParam());
  const int ranks = cluster.ranks();
  std::mt19937_64 random(seed);
  constexpr int kSteps = 60;

  // The program and what it must see are worked out first; then all ranks run it.
  struct Planned {
    Step step;
    std::vector<view::FileView> views;
    std::vector<std::vector<std::byte>> expected;  // per rank, for reads
    std::int64_t size = 0;                         // afterwards
  };
  std::vector<Planned> program;
  Model model;
  std::vector<view::FileView> views(static_cast<std::size_t>(ranks));
  for (int i = 0; i < kSteps; ++i) {
    Planned planned;
    Step& step = planned.step;
    step.kind = i == 0 ? Step::set_view : static_cast<Step::Kind>(random() % Step::kinds);
    step.fill = static_cast<unsigned>(i);
    step.writer = static_cast<int>(random() % static_cast<unsigned>(ranks));
    if (step.kind == Step::set_view) views = random_views(random, ranks);
    if (step.kind == Step::reopen) std::fill(views.begin(), views.end(), view::FileView());
    const bool bytes_view = views[0].contiguous();
    const std::int64_t position = static_cast<std::int64_t>(random() % 3000);
    for (int rank = 0; rank < ranks; ++rank) {
      view::ViewRange range{position + static_cast<std::int64_t>(random() % 50),
                            static_cast<std::int64_t>(random() % 20000)};
      if (random() % 6 == 0) range.length = 0;
      if (bytes_view) range = {rank * 5000 + position, range.length % 5000};  // whole-file views: own places
      step.ranges.push_back(range);
    }
    step.size = static_cast<std::int64_t>(random() % 60000);
    const auto range_of = [&](int rank) { return step.ranges[static_cast<std::size_t>(rank)]; };
    const auto view_of = [&](int rank) -> const view::FileView& { return views[static_cast<std::size_t>(rank)]; };
    planned.expected.resize(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      const bool mine = step.kind == Step::write_all || (step.kind == Step::write_one && rank == step.writer);
      if (mine) model.write(view_of(rank), range_of(rank), step.fill, rank);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      if (step.kind == Step::read_all || step.kind == Step::read_one) {
        planned.expected[static_cast<std::size_t>(rank)] = model.read(view_of(rank), range_of(rank));
      }
    }
    if (step.kind == Step::set_size) model.resize(step.size);
    planned.size = model.size();
    planned.views = views;
    program.push_back(std::move(planned));
  }

  cluster.run([&](int rank, const Cluster::Open& open) {
    auto file = open("data", {.create = true});
    std::mt19937_64 local(seed + static_cast<unsigned long>(rank));
    for (std::size_t i = 0; i < program.size(); ++i) {
      const Planned& planned = program[i];
      const Step& step = planned.step;
      SCOPED_TRACE("rank " + std::to_string(rank) + ", step " + std::to_string(i) + ", kind " +
                   std::to_string(step.kind));
      const view::ViewRange range = step.ranges[static_cast<std::size_t>(rank)];
      Buffer buffer(range.length, local() % 3 == 0);
      const OpenFile::Transfer what = transfer(range.position, buffer.layout, range.length);
      switch (step.kind) {
        case Step::write_all:
        case Step::write_one:
          for (std::int64_t k = 0; k < range.length; ++k) buffer.at(k) = byte_at(step.fill, rank, k);
          if (step.kind == Step::write_all) {
            ASSERT_TRUE(file->write_all(what).ok());
          } else if (rank == step.writer) {
            ASSERT_TRUE(file->write(what).ok());
          }
          break;
        case Step::read_all:
        case Step::read_one: {
          Result<std::int64_t> got = step.kind == Step::read_all ? file->read_all(what) : file->read(what);
          ASSERT_TRUE(got.ok()) << got.status().to_string();
          const auto& expected = planned.expected[static_cast<std::size_t>(rank)];
          ASSERT_EQ(*got, static_cast<std::int64_t>(expected.size()));
          for (std::int64_t k = 0; k < *got; ++k)
            ASSERT_EQ(buffer.at(k), expected[static_cast<std::size_t>(k)]) << "byte " << k;
          break;
        }
        case Step::sync:
          ASSERT_TRUE(file->sync().ok());
          break;
        case Step::set_size:
          ASSERT_TRUE(file->set_size(step.size, {}).ok());
          break;
        case Step::reopen:
          ASSERT_TRUE(file->close().ok());
          file = open("data", {});
          break;
        case Step::set_view:
          ASSERT_TRUE(file->set_view({}, planned.views[static_cast<std::size_t>(rank)]).ok());
          break;
        case Step::kinds:
          break;
      }
      // Programs order independent accesses by a barrier or a message; between nodes MPI asks for sync as well.
      const bool independent = step.kind == Step::write_one || step.kind == Step::read_one;
      if (independent && file->comm().node_count() > 1) {
        ASSERT_TRUE(file->sync().ok());
      }
      ASSERT_TRUE(file->comm().barrier().ok());
      if (i + 1 < program.size() && program[i + 1].step.kind >= Step::write_one && file->comm().node_count() > 1) {
        ASSERT_TRUE(file->sync().ok());
        ASSERT_TRUE(file->comm().barrier().ok());
      }
      if (step.kind == Step::set_size || step.kind == Step::write_all) {
        ASSERT_EQ(*file->size(), planned.size);
      }
      ASSERT_TRUE(file->comm().barrier().ok());
    }
    ASSERT_TRUE(file->sync().ok());
    ASSERT_TRUE(file->close().ok());
  });
  EXPECT_EQ(cluster.content("data"), model.text());
}

INSTANTIATE_TEST_SUITE_P(All, EveryShape,
                         testing::Values(Shape{1, 1}, Shape{1, 1, base::Stage::none}, Shape{1, 2}, Shape{1, 4},
                                         Shape{1, 4, base::Stage::none}, Shape{1, 4, base::Stage::memory, 65536},
                                         Shape{1, 4, base::Stage::memory, 5000},
                                         Shape{1, 4, base::Stage::memory, 1 << 20, base::AlgorithmChoice::two_phase},
                                         Shape{1, 3, base::Stage::none, 0, base::AlgorithmChoice::two_phase},
                                         Shape{1, 4, base::Stage::memory, 1 << 20, base::AlgorithmChoice::individual},
                                         Shape{1, 7}, Shape{2, 2}, Shape{2, 2, base::Stage::none},
                                         Shape{2, 2, base::Stage::memory, 65536},
                                         Shape{3, 2, base::Stage::memory, 1 << 20, base::AlgorithmChoice::two_phase},
                                         Shape{3, 1, base::Stage::memory, 1 << 20, base::AlgorithmChoice::individual}),
                         [](const testing::TestParamInfo<Shape>& shape) { return name_of_shape(shape.param); });

}  // namespace
}  // namespace spillway::file
