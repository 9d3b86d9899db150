// What regular and irregular access patterns cost: walking, seeking, the union over all ranks, strided
// copies. The copies are to be read against Memcpy of the same run, whose bytes per second are the machine's.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "extent/pattern.h"
#include "extent/union_solver.h"
#include "view/copy.h"
#include "view/file_view.h"

namespace spillway::extent {
namespace {

// --- Walking and seeking -----------------------------------------------------------------------------------

Pattern vector_of(std::int64_t count, std::int64_t length, std::int64_t stride) {
  return Pattern::strided(Pattern::block(0, length), count, stride);
}

Pattern irregular_blocks(std::int64_t count, bool equal_lengths) {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> lengths;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    offsets.push_back(at);
    lengths.push_back(equal_lengths ? 8 : 8 + i % 3);
    at += 16 + i * i % 61;
  }
  return Pattern::blocks(offsets, lengths);
}

void walk(benchmark::State& state, const Pattern& pattern) {
  std::int64_t runs = 0;
  for (auto _ : state) {
    for (PatternCursor cursor(pattern, 0, 0, pattern.bytes()); cursor.remaining() > 0; ++runs) {
      benchmark::DoNotOptimize(cursor.next());
    }
  }
  state.counters["per_run"] =
      benchmark::Counter(static_cast<double>(runs), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void walk_rows_of_planes(benchmark::State& state) {
  walk(state, Pattern::strided(vector_of(4, 8, 100), 100'000, 1000));
}
void walk_three_levels(benchmark::State& state) {
  walk(state, Pattern::strided(Pattern::strided(vector_of(4, 8, 100), 4, 1000), 30'000, 10'000));
}
void walk_equal_blocks(benchmark::State& state) { walk(state, irregular_blocks(100'000, true)); }
void walk_unequal_blocks(benchmark::State& state) { walk(state, irregular_blocks(100'000, false)); }
void walk_list_of_vectors(benchmark::State& state) {
  std::vector<std::int64_t> offsets;
  std::vector<Pattern> children;
  for (std::int64_t i = 0; i < 1000; ++i) {
    offsets.push_back(i * 10'000);
    children.push_back(vector_of(5 + i % 3, 8, 64));
  }
  walk(state, Pattern::list(offsets, children));
}
BENCHMARK(walk_rows_of_planes);
BENCHMARK(walk_three_levels);
BENCHMARK(walk_equal_blocks);
BENCHMARK(walk_unequal_blocks);
BENCHMARK(walk_list_of_vectors);

void start_cursor(benchmark::State& state) {
  const Pattern pattern = Pattern::strided(vector_of(1000, 8, 100), 1000, 200'000);
  std::int64_t position = 0;
  for (auto _ : state) {
    position = (position + 7919) % pattern.bytes();
    PatternCursor cursor(pattern, 1'000'000'000, position, 1 << 20);
    benchmark::DoNotOptimize(cursor.next());
  }
}
BENCHMARK(start_cursor);

void seek(benchmark::State& state, const Pattern& pattern) {
  std::int64_t position = 0;
  for (auto _ : state) {
    position = (position + 15'485'863) % pattern.bytes();
    benchmark::DoNotOptimize(pattern.offset_of(position));
  }
}
void offset_of_nested(benchmark::State& state) {
  seek(state, Pattern::strided(Pattern::strided(vector_of(1000, 8, 100), 1000, 200'000), 100, 1'000'000'000));
}
void offset_of_blocks(benchmark::State& state) { seek(state, irregular_blocks(1'000'000, false)); }
void bytes_below_blocks(benchmark::State& state) {
  const Pattern pattern = irregular_blocks(1'000'000, false);
  std::int64_t offset = 0;
  for (auto _ : state) {
    offset = (offset + 15'485'863) % pattern.bounds().length;
    benchmark::DoNotOptimize(pattern.bytes_below(offset));
  }
}
BENCHMARK(offset_of_nested);
BENCHMARK(offset_of_blocks);
BENCHMARK(bytes_below_blocks);

// --- Unions ------------------------------------------------------------------------------------------------

using Accesses = std::vector<TiledAccess>;

void unite(benchmark::State& state, const Accesses& accesses, const Extent& range) {
  UnionResult result;
  for (auto _ : state) result = solve_union(accesses, range);
  state.counters["extents"] = static_cast<double>(result.extents.size());
  state.counters["steps"] = static_cast<double>(result.steps);
}

// `ranks` interleaved vectors of `piece` bytes, `pieces` in all; `gap` bytes belong to nobody in every round.
void interleaved(benchmark::State& state, std::int64_t ranks, std::int64_t piece, std::int64_t pieces,
                 std::int64_t gap) {
  const std::int64_t period = ranks * piece + gap;
  Accesses accesses;
  for (std::int64_t r = 0; r < ranks; ++r) {
    accesses.push_back({Pattern::block(0, piece), r * piece, period, 3, pieces / ranks * piece});
  }
  unite(state, accesses, {0, pieces / ranks * period});
}
BENCHMARK_CAPTURE(interleaved, 8_ranks_1e8_pieces, 8, 8, 100'000'000, 0);
BENCHMARK_CAPTURE(interleaved, 1024_ranks_1e8_pieces, 1024, 8, 100'000'000, 0);
BENCHMARK_CAPTURE(interleaved, 64_ranks_1e7_pieces_with_holes, 64, 8, 10'000'000, 64);

// side^3 ranks, each with a cube of a 3-D array of `width`^3 values of 8 bytes and `halo` values around it.
void cubes(benchmark::State& state, std::int64_t side, std::int64_t width, std::int64_t halo) {
  const std::int64_t row = side * width * 8;
  const std::int64_t plane = row * side * width;
  const std::int64_t array = plane * side * width;
  Accesses accesses;
  for (std::int64_t i = 0; i < side * side * side; ++i) {
    std::int64_t low[3] = {i % side, i / side % side, i / side / side};
    std::int64_t count[3];
    for (int d = 0; d < 3; ++d) {
      const std::int64_t high = std::min(side * width, (low[d] + 1) * width + halo);
      low[d] = std::max<std::int64_t>(0, low[d] * width - halo);
      count[d] = high - low[d];
    }
    const Pattern cube = Pattern::strided(vector_of(count[1], count[0] * 8, row), count[2], plane);
    accesses.push_back({cube, low[0] * 8 + low[1] * row + low[2] * plane, array, 0, cube.bytes()});
  }
  unite(state, accesses, {array / 3 + 5, array / 3});
}
BENCHMARK_CAPTURE(cubes, 512_ranks_32_cubed, 8, 32, 0);
BENCHMARK_CAPTURE(cubes, 512_ranks_32_cubed_with_halo, 8, 32, 1);

// Tiles of a large image, one to a rank (mpi-tile-io): 32 x 32 tiles of 512 rows of 16 KiB.
void tiles(benchmark::State& state) {
  Accesses accesses;
  for (std::int64_t r = 0; r < 1024; ++r) {
    const std::int64_t displacement = r / 32 * 512 * 32 * 16384 + r % 32 * 16384;
    const Pattern tile = vector_of(512, 16384, 32 * 16384);
    accesses.push_back({tile, displacement, tile.bounds().length, 0, tile.bytes()});
  }
  unite(state, accesses, {0, std::int64_t{1024} * 512 * 16384});
}
BENCHMARK(tiles);

// Block-tridiagonal multi-partition (NPB BT-IO): n^2 ranks, n cells each, 5 values of 8 bytes to a point.
void diagonal_cells(benchmark::State& state, std::int64_t n, std::int64_t width) {
  const std::int64_t row = n * width * 40;
  const std::int64_t plane = row * n * width;
  const Pattern cell = Pattern::strided(vector_of(width, width * 40, row), width, plane);
  Accesses accesses;
  for (std::int64_t r = 0; r < n * n; ++r) {
    std::vector<std::int64_t> offsets;
    for (std::int64_t z = 0; z < n; ++z) {
      offsets.push_back(width * (z * plane + (r / n + z) % n * row + (r + z) % n * 40));
    }
    const Pattern cells = Pattern::list(offsets, cell);
    accesses.push_back({cells, 0, plane * n * width, 0, cells.bytes()});
  }
  unite(state, accesses, {0, plane * n * width});
}
BENCHMARK_CAPTURE(diagonal_cells, 64_ranks, 8, 64);
BENCHMARK_CAPTURE(diagonal_cells, 1024_ranks, 32, 32);

void one_block_per_rank(benchmark::State& state) {
  Accesses accesses;
  for (std::int64_t r = 0; r < 1024; ++r)
    accesses.push_back({Pattern::block(0, 4 << 20), r << 22, 4 << 20, 0, 4 << 20});
  unite(state, accesses, {0, std::int64_t{4} << 30});
}
BENCHMARK(one_block_per_rank);

// Nothing repeats: 16 ranks with 10^5 blocks each at different places.
void irregular(benchmark::State& state) {
  Accesses accesses;
  for (std::int64_t r = 0; r < 16; ++r) {
    std::vector<std::int64_t> offsets;
    for (std::int64_t i = 0; i < 100'000; ++i) offsets.push_back(i * 800 + (i * i * (r + 3) + r * 131) % 790);
    const Pattern pattern = Pattern::list(offsets, Pattern::block(0, 8));
    accesses.push_back({pattern, 0, pattern.bounds().length, 0, pattern.bytes()});
  }
  unite(state, accesses, {0, 80'000'000});
}
BENCHMARK(irregular);

}  // namespace
}  // namespace spillway::extent

namespace spillway::view {
namespace {

// --- Copies ------------------------------------------------------------------------------------------------

// One side dense, the other one strided as if `kRanks` ranks were interleaved. In cache: what the loops can
// do. In memory: what a journal sees.
constexpr std::int64_t kRanks = 4;
constexpr std::int64_t kInCache = 64 << 10;
constexpr std::int64_t kInMemory = 64 << 20;

enum class Shape { gather, scatter, both };

void copy_pieces(benchmark::State& state, Shape shape) {
  const std::int64_t length = state.range(0);
  const std::int64_t total = state.range(1);
  const std::int64_t spread = length * kRanks;
  const std::int64_t to_stride = shape == Shape::gather ? length : spread;
  const std::int64_t from_stride = shape == Shape::scatter ? length : spread;
  const std::int64_t count = total / length;
  std::vector<std::byte> to(static_cast<std::size_t>(to_stride * count), std::byte{1});
  std::vector<std::byte> from(static_cast<std::size_t>(from_stride * count), std::byte{2});
  for (auto _ : state) {
    copy_strided(to.data(), to_stride, from.data(), from_stride, length, count);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * total);
}

void memcpy_whole(benchmark::State& state) {
  const auto total = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> to(total, std::byte{1});
  const std::vector<std::byte> from(total, std::byte{2});
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), total);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void piece_lengths(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t total : {kInCache, kInMemory}) {
    for (const std::int64_t length : {8, 16, 24, 64, 256, 1024, 4096, 65536}) {
      if (length * kRanks <= total) benchmark->Args({length, total});
    }
  }
}

BENCHMARK(memcpy_whole)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK_CAPTURE(copy_pieces, gather, Shape::gather)->Apply(piece_lengths);
BENCHMARK_CAPTURE(copy_pieces, scatter, Shape::scatter)->Apply(piece_lengths);
BENCHMARK_CAPTURE(copy_pieces, both, Shape::both)->Apply(piece_lengths);

// From cursor to bytes: contiguous memory into an interleaved view.
void pack_by_moves(benchmark::State& state) {
  constexpr std::int64_t kBytes = 16 << 20;
  const std::int64_t length = state.range(0);
  const FileView view = FileView::make(0, 8, extent::Pattern::block(0, length), length * kRanks, true).value();
  std::vector<std::byte> file(static_cast<std::size_t>(kBytes * kRanks));
  std::vector<std::byte> memory(static_cast<std::size_t>(kBytes), std::byte{3});
  const MemoryLayout layout = MemoryLayout::contiguous_bytes(memory.data(), kBytes);
  for (auto _ : state) {
    for (MoveCursor cursor(view, layout, 0, {0, kBytes}); !cursor.done();) {
      const Move move = cursor.next();
      copy_strided(file.data() + move.file_offset, move.file_stride, move.memory, move.memory_stride, move.length,
                   move.count);
    }
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK(pack_by_moves)->Arg(8)->Arg(64)->Arg(1024);

}  // namespace
}  // namespace spillway::view

BENCHMARK_MAIN();
