// The operations of OpenFile that move no user bytes: pointers, size, sync, modes.
#include <fmt/format.h>

#include <algorithm>

#include "file/open_file.h"

namespace spillway::file {

// Collective: the value of rank 0, after all ranks agreed that theirs is the same and their arguments are in order.
Result<std::int64_t> OpenFile::same_everywhere(std::int64_t value, const Status& mine, const char* what) {
  struct Answer {
    std::int64_t value;
    Code code;
  };
  const Answer answer{value, mine.code()};
  comm::Gathered all;
  if (Status status = comm_->allgatherv(comm::bytes_of(answer), all); !status) return status;
  Code worst = Code::ok;
  bool same = true;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto other = comm::value_of<Answer>(all[rank]);
    worst = std::max(worst, other.code);
    same = same && other.value == comm::value_of<Answer>(all[0]).value;
  }
  if (worst != Code::ok) return worst == mine.code() ? mine : Status(worst, "another rank's arguments were refused");
  if (!same) return Status(Code::not_same, fmt::format("the ranks gave different values for {}", what));
  return value;
}

// --- pointers ---

Result<std::int64_t> OpenFile::take_shared(std::int64_t length) {
  return shared_pointer_->fetch_add(length / view_.etype_bytes());
}

Status OpenFile::set_shared_position(std::int64_t position, const Status& mine) {
  Result<std::int64_t> agreed = same_everywhere(position, mine, "the shared file pointer");
  if (!agreed) return agreed.status();
  return comm::agree(*comm_, comm_->rank() == 0 ? shared_pointer_->set(position) : Status());  // by all ranks
}

Result<std::int64_t> OpenFile::take_ordered(std::int64_t length, const Status& mine) {
  struct Part {
    std::int64_t etypes;
    std::int64_t base;  // rank 0's
    Code code;
  };
  Status status = mine;
  Part part{length / view_.etype_bytes(), 0, Code::ok};
  if (comm_->rank() == 0) {
    Result<std::int64_t> base = shared_position();
    if (base.ok()) part.base = *base;
    if (!base.ok() && status.ok()) status = base.status();
  }
  part.code = status.code();
  comm::Gathered all;
  if (Status gathered = comm_->allgatherv(comm::bytes_of(part), all); !gathered) return gathered;
  std::int64_t total = 0;
  std::int64_t before_me = 0;
  Code worst = Code::ok;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto other = comm::value_of<Part>(all[rank]);
    worst = std::max(worst, other.code);
    if (static_cast<int>(rank) < comm_->rank()) before_me += other.etypes;
    total += other.etypes;
  }
  if (worst != Code::ok)
    return worst == status.code() ? status : Status(worst, "another rank's arguments were refused");
  const std::int64_t base = comm::value_of<Part>(all[0]).base;
  // The collective transfer that follows ends with an agreement: nobody is past it before this is done.
  if (comm_->rank() == 0) {
    if (Status set = shared_pointer_->set(base + total); !set) return set;
  }
  return base + before_me;
}

// --- size ---

Result<std::int64_t> OpenFile::size() { return local_.file_end(); }

Result<std::int64_t> OpenFile::end_position() {
  Result<std::int64_t> end = size();
  if (!end) return end;
  if (view_.contiguous())
    return (std::max<std::int64_t>(0, *end - view_.displacement()) + view_.etype_bytes() - 1) / view_.etype_bytes();
  if (!view_.sorted_disjoint())
    return Status(Code::unsupported, "the end of a view whose pieces overlap is not defined");
  return (view_.bytes_below(*end) + view_.etype_bytes() - 1) / view_.etype_bytes();
}

Status OpenFile::set_size(std::int64_t bytes, const Status& mine) {
  Status checked = mine;
  if (checked.ok() && bytes < 0) checked = Status(Code::bad_argument, fmt::format("size {} is negative", bytes));
  if (checked.ok() && mode_.access == storage::Access::read_only) {
    checked = Status(Code::read_only, "the file was opened for reading only").on_path(path());
  }
  if (checked.ok()) checked = own_background_error();
  Result<std::int64_t> agreed = same_everywhere(bytes, checked, "the size");
  if (!agreed) return agreed.status();

  // Pending bytes beyond the new end must not come back later. Below it they may arrive when they like.
  Status settled;
  if (context_.runtime.pending().end(context_.slot()) > bytes) {
    context_.runtime.drain().discard(context_.slot(), bytes);
    settled = drain_all();
    if (settled.ok()) settled = settle(context_, {bytes, INT64_MAX - bytes});  // other handles' too
  }
  if (Status status = comm::agree(*comm_, settled); !status) return status;                        // by all ranks
  return comm::agree(*comm_, comm_->rank() == 0 ? context_.storage().truncate(bytes) : Status());  // by all ranks
}

Status OpenFile::preallocate(std::int64_t bytes, const Status& mine) {
  Status checked = mine;
  if (checked.ok() && bytes < 0) checked = Status(Code::bad_argument, fmt::format("size {} is negative", bytes));
  if (checked.ok() && mode_.access == storage::Access::read_only) {
    checked = Status(Code::read_only, "the file was opened for reading only").on_path(path());
  }
  Result<std::int64_t> agreed = same_everywhere(bytes, checked, "the size");
  if (!agreed) return agreed.status();
  return comm::agree(*comm_, comm_->rank() == 0 ? context_.storage().preallocate(bytes) : Status());  // by all ranks
}

// --- sync and modes ---

Status OpenFile::sync() {
  const InsideCall inside(context_.runtime);
  const TraceScope scope(context_.runtime, "sync", path());
  Status mine = own_background_error();
  if (mine.ok() && mode_.access == storage::Access::read_only) {
    mine = Status(Code::read_only, "the file was opened for reading only").on_path(path());
  }
  // Whatever has failed, the rest is written, so that no failure that belongs to this call shows only in the next one.
  const Status drained = drain_all();
  Status status = comm::agree(*comm_, mine.ok() ? drained : mine);  // by all ranks
  if (status.ok()) {
    // Every rank of the handle has tried again by now: who is still stuck is nobody here.
    mine = others_background_error();
    if (mine.ok()) mine = context_.storage().sync();
    status = comm::agree(*comm_, mine);  // by all ranks
  }
  mark_reported(status);
  return status;
}

Status OpenFile::set_atomicity(bool atomic, const Status& mine) {
  Result<std::int64_t> agreed = same_everywhere(atomic ? 1 : 0, mine, "the atomicity");
  if (!agreed) return agreed.status();
  if (atomic) {
    // What is pending was written in the other mode: into the file with it, then try whether the locks work.
    Status ready = drain_all();
    if (ready.ok()) ready = context_.storage().lock(0, 1, mode_.access != storage::Access::read_only);
    if (ready.ok()) ready = context_.storage().unlock(0, 1);
    if (Status status = comm::agree(*comm_, ready); !status) return status;  // by all ranks
  }
  atomic_ = atomic;
  choose_staging();
  return {};
}

}  // namespace spillway::file
