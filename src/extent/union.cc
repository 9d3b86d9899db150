#include "extent/union.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <vector>

#include "extent/checked.h"
#include "extent/union_merge.h"
#include "extent/union_solver.h"
#include "extent/union_terms.h"

// How it works. Every access is cut at the ends of its range into a few terms: a cut head, whole repetitions,
// a cut tail. Terms whose bounds overlap form a group; groups are independent of each other. Inside a group,
// a *period* is chosen that the strides divide, and the group is laid out on a grid of *cells* of that
// length. Most terms look the same in every cell but for their first and last ones, so the grid falls into
// few *stretches* of cells that all look the same. One cell of each stretch is solved, by the same method
// with the smaller strides that are left, and stands for the others: if it comes out full, the whole stretch
// is one extent. Terms that follow no period matter only where the others leave holes; there, and where a
// group has no period at all, pieces are merged one by one.

namespace spillway::extent {
namespace {

// So many pieces of regular terms must have joined into one extent for irregular ones to be merged with the
// extents instead of the pieces.
constexpr std::int64_t kJoinedMin = 4;

std::int64_t add_saturated(std::int64_t a, std::int64_t b) { return (Checked(a) + b).value_or_max(); }

// Where a term lies on the grid.
struct Member {
  const Term* term;
  // It has pieces in cells [begin, end). In [same_begin, same_end), which may be empty, they look the same in
  // every cell.
  std::int64_t begin;
  std::int64_t end;
  std::int64_t same_begin;
  std::int64_t same_end;
  bool irregular;  // they differ from cell to cell
};

class Union {
 public:
  explicit Union(const UnionTuning& tuning) : tuning_(tuning) {}

  // Appends the union of the terms, all of which lie behind what is in `out`. Reorders them.
  void solve(std::span<Term> terms, ExtentList& out);

  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  void solve_group(std::span<Term> terms, const Extent& bounds, ExtentList& out);
  void solve_on_grid(std::span<const Term> terms, const Extent& bounds, std::int64_t period, ExtentList& out);
  void solve_stretch(std::span<const Member* const> members, const Extent& first, const Extent& stretch,
                     ExtentList& out);
  void replicate(const ExtentList& cell, const Extent& first, const Extent& stretch, ExtentList& out);
  void merge(std::span<const Term> terms, ExtentList& out) { steps_ += merge_pieces(terms, out); }
  void expand(std::span<const Term> terms, std::int64_t stride, ExtentList& out);

  const UnionTuning tuning_;
  std::int64_t steps_ = 0;
};

// What decides how a group is solved.
struct Traits {
  std::int64_t pieces = 0;
  std::int64_t strided_terms = 0;
  std::int64_t longest_stride = 0;
  std::int64_t longest_stride_repetitions = 0;
  std::int64_t common_stride = 1;  // least common multiple, saturated
};

Traits traits_of(std::span<const Term> terms) {
  Traits traits;
  for (const Term& term : terms) {
    traits.pieces = add_saturated(traits.pieces, term.pieces);
    if (term.kind != Term::Kind::strided) continue;
    ++traits.strided_terms;
    if (term.stride > traits.longest_stride) {
      traits.longest_stride = term.stride;
      traits.longest_stride_repetitions = 0;
    }
    if (term.stride == traits.longest_stride) {
      traits.longest_stride_repetitions = add_saturated(traits.longest_stride_repetitions, term.count);
    }
    const std::int64_t factor = term.stride / std::gcd(term.stride, traits.common_stride);
    traits.common_stride = (Checked(traits.common_stride) * factor).value_or_max();
  }
  return traits;
}

// The stride under which most pieces of the group repeat.
std::int64_t prevailing_stride(std::span<const Term> terms) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces;  // by stride
  for (const Term& term : terms) {
    if (term.kind == Term::Kind::strided) pieces.emplace_back(term.stride, term.pieces);
  }
  std::sort(pieces.begin(), pieces.end());
  std::int64_t best = 0;
  std::int64_t best_pieces = 0;
  for (std::size_t i = 0; i < pieces.size();) {
    const std::int64_t stride = pieces[i].first;
    std::int64_t total = 0;
    for (; i < pieces.size() && pieces[i].first == stride; ++i) total = add_saturated(total, pieces[i].second);
    if (total > best_pieces) best = stride;
    best_pieces = std::max(best_pieces, total);
  }
  return best;
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a <= 0 ? 0 : (a - 1) / b + 1; }

Member place(const Term& term, std::int64_t origin, std::int64_t period) {
  const std::int64_t begin = term.begin - origin;
  const std::int64_t end = term.end - origin;
  Member member{&term, begin / period, divide_up(end, period), 0, 0, false};
  if (term.kind == Term::Kind::strided && period % term.stride == 0) {
    // Inside a cell nothing tells its first and last repetition from the others, as long as the cell begins
    // after where one more repetition in front would end, and ends before where one more behind would begin.
    const std::int64_t gap = term.stride - term.node->high;
    member.same_begin = divide_up(begin - gap, period);
    member.same_end = add_saturated(end, gap) / period;
  } else if (term.kind == Term::Kind::block) {
    member.same_begin = divide_up(begin, period);
    member.same_end = end / period;
  } else {
    member.irregular = true;
  }
  member.same_end = std::min(member.same_end, member.end);
  return member;
}

// The cells at which some member begins, ends or looks different from the cell before; sorted.
std::vector<std::int64_t> boundaries_of(std::span<const Member> members) {
  std::vector<std::int64_t> cells;
  for (const Member& member : members) {
    cells.push_back(member.begin);
    cells.push_back(member.end);
    if (member.irregular) continue;
    if (member.same_begin < member.same_end) {
      cells.push_back(member.same_begin);
      cells.push_back(member.same_end);
    } else {
      for (std::int64_t cell = member.begin + 1; cell < member.end; ++cell) cells.push_back(cell);
    }
  }
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  return cells;
}

void Union::solve(std::span<Term> terms, ExtentList& out) {
  const auto by_begin = [](const Term& a, const Term& b) { return a.begin < b.begin; };
  if (!std::is_sorted(terms.begin(), terms.end(), by_begin)) std::sort(terms.begin(), terms.end(), by_begin);
  steps_ += static_cast<std::int64_t>(terms.size());
  for (std::size_t i = 0; i < terms.size();) {
    std::size_t n = i + 1;
    std::int64_t end = terms[i].end;
    while (n < terms.size() && terms[n].begin < end) end = std::max(end, terms[n++].end);
    solve_group(terms.subspan(i, n - i), {terms[i].begin, end - terms[i].begin}, out);
    i = n;
  }
}

void Union::solve_group(std::span<Term> terms, const Extent& bounds, ExtentList& out) {
  const auto covers = [&](const Term& term) { return term.kind == Term::Kind::block && term.bounds() == bounds; };
  if (std::any_of(terms.begin(), terms.end(), covers)) return out.append(bounds);
  const Traits traits = traits_of(terms);
  const auto count = static_cast<std::int64_t>(terms.size());
  if (traits.pieces == count) {
    for (const Term& term : terms) out.append(term.bounds());
    return;
  }
  const std::int64_t few = std::max(tuning_.few_pieces, tuning_.few_pieces_per_term * count);
  if (count == 1 || traits.strided_terms == 0 || traits.pieces <= few) return merge(terms, out);

  const std::int64_t common = traits.common_stride;
  if (common == traits.longest_stride || common <= bounds.length / tuning_.periods_min) {
    return solve_on_grid(terms, bounds, common, out);
  }
  // Few long strides that the others do not divide, each with much below it.
  if (traits.longest_stride_repetitions <= few) {
    return expand(terms, traits.longest_stride, out);
  }
  solve_on_grid(terms, bounds, prevailing_stride(terms), out);
}

// Solves again with the repetitions of the terms of this stride in the place of the terms.
void Union::expand(std::span<const Term> terms, std::int64_t stride, ExtentList& out) {
  Terms expanded;
  for (const Term& term : terms) {
    if (term.kind != Term::Kind::strided || term.stride != stride) {
      expanded.push_back(term);
      continue;
    }
    for (std::int64_t i = 0; i < term.count; ++i) add_whole(*term.node, term.begin + i * stride, expanded);
  }
  solve(expanded, out);
}

void Union::solve_on_grid(std::span<const Term> terms, const Extent& bounds, std::int64_t period, ExtentList& out) {
  std::vector<Member> members;
  members.reserve(terms.size());
  for (const Term& term : terms) members.push_back(place(term, bounds.offset, period));
  const std::vector<std::int64_t> cells = boundaries_of(members);
  steps_ += static_cast<std::int64_t>(members.size() + cells.size());

  std::vector<const Member*> active;
  auto next = members.begin();  // ordered by their first cell, as the terms are by their first byte
  for (std::size_t i = 0; i + 1 < cells.size(); ++i) {
    std::erase_if(active, [&](const Member* member) { return member->end <= cells[i]; });
    for (; next != members.end() && next->begin <= cells[i]; ++next) active.push_back(&*next);
    const std::int64_t begin = bounds.offset + cells[i] * period;
    const Extent cell{begin, std::min(period, bounds.end() - begin)};
    const std::int64_t end = i + 2 == cells.size() ? bounds.end() : bounds.offset + cells[i + 1] * period;
    solve_stretch(active, cell, {begin, end - begin}, out);
  }
}

// Cells that look the same but for irregular members; `first` is the first of them.
void Union::solve_stretch(std::span<const Member* const> members, const Extent& first, const Extent& stretch,
                          ExtentList& out) {
  Terms regular;
  Terms irregular;
  for (const Member* member : members) {
    if (member->irregular) {
      add_part(*member->term, stretch, irregular);
    } else {
      add_part(*member->term, first, regular);
    }
  }
  if (irregular.empty() && first == stretch) return solve(regular, out);
  std::int64_t pieces = 0;
  for (const Term& term : regular) pieces = add_saturated(pieces, term.pieces);
  ExtentList cell;
  solve(regular, cell);
  if (cell.size() == 1 && cell[0] == first) return out.append(stretch);
  if (irregular.empty()) return replicate(cell, first, stretch, out);

  if (static_cast<std::int64_t>(cell.size()) > pieces / kJoinedMin) {
    for (const Member* member : members) {
      if (!member->irregular) add_part(*member->term, stretch, irregular);
    }
    return merge(irregular, out);
  }
  ExtentList repeated;
  ExtentList others;
  replicate(cell, first, stretch, repeated);
  merge(irregular, others);
  for (const Extent& extent : repeated.united(others)) out.append(extent);
}

void Union::replicate(const ExtentList& cell, const Extent& first, const Extent& stretch, ExtentList& out) {
  const std::int64_t count = divide_up(stretch.length, first.length);
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Extent& extent : cell) out.append({extent.offset + i * first.length, extent.length});
  }
  steps_ += count * static_cast<std::int64_t>(cell.size());
}

// The part of the access inside `range`, as terms. Nodes made on the way are kept in `patterns`.
void add_access(const TiledAccess& access, const Extent& range, std::vector<Pattern>& patterns, Terms& terms) {
  const Pattern& pattern = access.pattern;
  assert(pattern.sorted_disjoint() && access.position >= 0);
  if (access.length <= 0 || pattern.empty()) return;
  const std::int64_t last = access.position + access.length - 1;
  const std::int64_t first_tile = access.position / pattern.bytes();
  const std::int64_t tiles = last / pattern.bytes() - first_tile + 1;
  const auto offset_of = [&](std::int64_t position) {
    const std::int64_t tile_offset = position / pattern.bytes() * access.tile_extent;
    return access.displacement + tile_offset + pattern.offset_of(position % pattern.bytes());
  };
  // In file order the stream is the file: a part of the one is what lies in a part of the other.
  const std::int64_t begin = offset_of(access.position);
  const Extent window = intersection({begin, offset_of(last) + 1 - begin}, range);
  if (window.empty()) return;
  const std::int64_t place = access.displacement + first_tile * access.tile_extent;
  patterns.push_back(Pattern::strided(pattern, tiles, access.tile_extent).displaced(place));
  const Pattern& tiled = patterns.back();
  if (tiled.representable()) return add_part(*tiled.node(), tiled.first_offset(), window, terms);

  // Its last tile as a whole reaches beyond the largest offset, but what is accessed of it does not.
  PatternCursor cursor(pattern, access.tile_extent, access.position, access.length);
  while (cursor.remaining() > 0) {
    const StridedRun run = cursor.next();
    for (std::int64_t i = 0; i < run.count; ++i) {
      const std::int64_t offset = access.displacement + run.offset + i * run.stride;
      const Extent piece = intersection({offset, run.length}, window);
      if (!piece.empty()) terms.push_back({.begin = piece.offset, .end = piece.end()});
    }
  }
}

}  // namespace

UnionResult solve_union(std::span<const TiledAccess> accesses, const Extent& range, const UnionTuning& tuning) {
  std::vector<Pattern> patterns;
  Terms terms;
  for (const TiledAccess& access : accesses) add_access(access, range, patterns, terms);
  UnionResult result;
  Union solver(tuning);
  solver.solve(terms, result.extents);
  result.steps = solver.steps();
  return result;
}

ExtentList coalesced_union(std::span<const TiledAccess> accesses, const Extent& range) {
  return solve_union(accesses, range).extents;
}

}  // namespace spillway::extent
