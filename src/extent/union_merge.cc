#include "extent/union_merge.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace spillway::extent {
namespace {

// The pieces of one term in file order; `run` is what comes next.
struct Source {
  StridedRun run;
  PatternWalk walk;

  explicit Source(const Term& term) : walk(term.walk()) {
    run = term.kind == Term::Kind::block ? StridedRun{term.begin, term.end - term.begin, 0, 1} : walk.next();
  }
};

class Merge {
 public:
  Merge(std::span<const Term> terms, ExtentList& out) : out_(out) {
    sources_.reserve(terms.size());
    for (const Term& term : terms) sources_.emplace_back(term);
    for (Source& source : sources_) heap_.push_back(&source);
    std::make_heap(heap_.begin(), heap_.end(), later);
  }

  std::int64_t run() {
    while (!heap_.empty()) {
      if (take_until(*heap_[0], second_offset())) {
        sink(heap_[0]);
      } else {
        Source* const last = heap_.back();
        heap_.pop_back();
        if (!heap_.empty()) sink(last);
      }
    }
    return steps_;
  }

 private:
  static bool later(const Source* a, const Source* b) { return a->run.offset > b->run.offset; }

  // Where the source after the first one continues.
  [[nodiscard]] std::int64_t second_offset() const {
    std::int64_t offset = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 1; i < std::min<std::size_t>(3, heap_.size()); ++i)
      offset = std::min(offset, heap_[i]->run.offset);
    return offset;
  }

  // Appends the pieces of the first source that begin at or below `limit`. False when it is exhausted.
  bool take_until(Source& source, std::int64_t limit) {
    StridedRun& run = source.run;
    while (run.offset <= limit) {
      ++steps_;
      out_.append({run.offset, run.length});
      const std::int64_t taken = 1 + covered_after_first(run);
      if (taken < run.count) {
        run.offset += taken * run.stride;
        run.count -= taken;
      } else if (source.walk.remaining() > 0) {
        run = source.walk.next();
      } else {
        return false;
      }
    }
    return true;
  }

  // How many pieces after the first lie inside what has been put out already.
  [[nodiscard]] std::int64_t covered_after_first(const StridedRun& run) const {
    const std::int64_t room = out_[out_.size() - 1].end() - run.offset - run.length;
    if (run.count == 1 || room < run.stride) return 0;
    return std::min(room / run.stride, run.count - 1);
  }

  // Puts the source in the place of the first one, then down to where it belongs.
  void sink(Source* source) {
    std::size_t hole = 0;
    for (;;) {
      std::size_t child = 2 * hole + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && later(heap_[child], heap_[child + 1])) ++child;
      if (!later(source, heap_[child])) break;
      heap_[hole] = heap_[child];
      hole = child;
    }
    heap_[hole] = source;
  }

  ExtentList& out_;
  std::vector<Source> sources_;
  std::vector<Source*> heap_;  // the source that continues lowest first
  std::int64_t steps_ = 0;
};

}  // namespace

std::int64_t merge_pieces(std::span<const Term> terms, ExtentList& out) { return Merge(terms, out).run(); }

}  // namespace spillway::extent
