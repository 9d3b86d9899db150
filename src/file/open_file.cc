#include "file/open_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/log.h"

namespace spillway::file {

namespace {

// The name under which recovery, started anywhere, finds the file.
std::string lasting_name(const std::string& path) {
  if (char* resolved = realpath(path.c_str(), nullptr); resolved != nullptr) {
    std::string name = resolved;
    std::free(resolved);
    return name;
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

}  // namespace

OpenFile::OpenFile(Parts parts, const OpenMode& mode, const Hints& hints)
    : comm_(std::move(parts.comm)),
      shared_pointer_(std::move(parts.shared_pointer)),
      context_{parts.runtime, *comm_, std::make_shared<drain::Target>(), parts.commit_word},
      mode_(mode),
      hints_(hints),
      local_(context_),
      staged_landing_(context_),
      direct_landing_(context_),
      read_landing_(context_),
      staged_io_({*comm_, local_, staged_landing_, read_landing_}),
      direct_io_({*comm_, local_, direct_landing_, read_landing_}) {}

OpenFile::~OpenFile() {
  // A handle that the program never closed: its bytes are the drain's business.
  if (open_) (void)finish_close({});
}

// --- open and close ---

Result<std::unique_ptr<OpenFile>> OpenFile::open(Parts parts, const std::string& path, const OpenMode& mode,
                                                 const Hints& hints) {
  const TraceScope scope(parts.runtime, "open", path);
  std::unique_ptr<OpenFile> file(new OpenFile(std::move(parts), mode, hints));
  if (Status status = file->open_target(path); !status) return status;
  if (Status status = file->register_target(path); !status) return status;
  return file;
}

Status OpenFile::open_target(const std::string& path) {
  storage::Backend& backend = context_.runtime.backend();
  storage::OpenOptions options{.access = mode_.access, .create = mode_.create, .exclusive = mode_.exclusive};
  const auto open_here = [&] {
    Result<std::unique_ptr<storage::File>> file = backend.open(path, options);
    if (!file) return file.status();
    context_.target->file = std::move(file).value();
    context_.target->path = path;
    return Status();
  };
  // Rank 0 creates; the others find the file there. By all ranks, twice.
  Status mine = comm_->rank() == 0 ? open_here() : Status();
  if (Status status = comm::agree(*comm_, mine); !status) return status;
  options.create = options.exclusive = false;
  mine = comm_->rank() == 0 ? Status() : open_here();
  return comm::agree(*comm_, mine);
}

Status OpenFile::register_target(const std::string& path) {
  Status mine;
  Result<storage::FileAttributes> attributes = context_.target->file->attributes();
  if (!attributes) {
    mine = attributes.status();
  } else {
    const storage::FileIdentity& identity = attributes->identity;
    Result<std::uint32_t> slot = context_.runtime.node().acquire_file(
        {identity.device, identity.inode, attributes->birth_ns}, lasting_name(path));
    if (slot.ok()) {
      context_.target->slot = *slot;
      open_ = true;
      // An error that was there before is another handle's to report.
      seen_error_epoch_ = context_.runtime.node().file(*slot).error.load(std::memory_order_acquire).epoch;
      if (comm_->node_count() > 1) {
        // From now on others may hold bytes that this node does not see, and the other way round: nothing is staged alone any more.
        context_.runtime.node().file(*slot).spans_nodes.store(1, std::memory_order_seq_cst);
        mine = settle(context_, {0, INT64_MAX});
      }
    } else {
      mine = slot.status();
    }
  }
  if (Status status = comm::agree(*comm_, mine); !status) {  // by all ranks
    if (open_) (void)finish_close({});
    return status;
  }
  limit_ = hints_.limit(context_.runtime.default_limit());
  if (limit_ > 0) context_.runtime.add_limit(limit_);
  choose_staging();
  if (!mode_.append) return {};
  Result<std::int64_t> end = end_position();
  mine = end.status();
  if (mine.ok()) position_ = *end;
  if (mine.ok() && comm_->rank() == 0) mine = shared_pointer_->set(*end);
  return comm::agree(*comm_, mine);  // by all ranks
}

void OpenFile::choose_staging() {
  const bool writable = mode_.access != storage::Access::read_only;
  // The same on every rank, whatever other handles are open.
  const bool others_look = comm_->node_count() > 1 && hints_.settings().between_nodes == base::BetweenNodes::written;
  context_.staging = writable && limit_ > 0 && !atomic_ && !others_look;
  // Asked at every independent write: a handle that spans nodes may come later.
  const bool spans_nodes =
      context_.runtime.node().file(context_.slot()).spans_nodes.load(std::memory_order_seq_cst) != 0;
  context_.staging_alone = context_.staging && !spans_nodes;
}

Status OpenFile::close() {
  const InsideCall inside(context_.runtime);
  const TraceScope scope(context_.runtime, "close", path());
  Status mine = own_background_error();
  if (mode_.delete_on_close) {
    mine = comm::agree(*comm_, mine);  // by all ranks: nobody uses the file any more
    Status removed = comm_->rank() == 0 ? context_.runtime.backend().remove(path()) : Status();
    if (removed.code() == Code::no_such_file) removed = {};
    mine = comm::agree(*comm_, mine.ok() ? removed : mine);  // by all ranks
    // The name may have been one of several, or a symbolic link: then the bytes are still wanted.
    Result<storage::FileAttributes> left = context_.storage().attributes();
    if (left.ok() && left->links == 0) context_.runtime.drain().discard(context_.slot(), 0);
  }
  if (mine.ok()) mine = closes_drained() ? drain_all() : grow_to_end();
  const Status closed = finish_close(comm::agree(*comm_, mine));  // by all ranks
  // A file system may keep an error until the last moment. Who waited for it hears of it.
  return closes_drained() ? comm::agree(*comm_, closed) : closed;  // by all ranks
}

bool OpenFile::closes_drained() const {
  return hints_.settings().close == base::ClosePolicy::drained || context_.runtime.other_nodes_look();
}

Status OpenFile::drain_all() { return context_.runtime.drain().wait(context_.slot(), context_.progress()); }

// The file gets its final size at once, so that whoever looks at it after a deferred close is not misled.
Status OpenFile::grow_to_end() {
  const std::int64_t end = context_.runtime.pending().end(context_.slot());
  if (end == 0) return {};
  Status status = context_.storage().grow(end);
  // A file system that cannot extend a file safely: the bytes themselves must do it.
  if (status.code() == Code::unsupported) return drain_all();
  return status;
}

Status OpenFile::finish_close(Status status) {
  open_ = false;
  const std::uint32_t slot = context_.slot();
  const bool wait = closes_drained();
  if (limit_ > 0) context_.runtime.remove_limit(limit_);
  context_.runtime.drain().submit_close(context_.target);
  if (wait && status.ok()) status = context_.runtime.drain().wait(slot, context_.progress());
  if (wait && status.ok()) {
    const journal::PackedError error = context_.runtime.node().file(slot).error.load(std::memory_order_acquire);
    if (error.epoch != seen_error_epoch_) {
      status = Status(static_cast<Code>(error.code), fmt::format("the file was closed (errno {})", error.errno_value))
                   .on_path(path());
    }
  }
  context_.runtime.node().release_file(slot);
  return status;
}

Status OpenFile::remove(Runtime& runtime, const std::string& path) {
  Result<storage::FileAttributes> attributes = runtime.backend().attributes(path);
  std::optional<std::uint32_t> slot;
  // Bytes are wanted as long as the file has another name; the file behind a symbolic link does not even lose one.
  if (attributes.ok() && attributes->links == 1)
    slot = runtime.node().find_file({attributes->identity.device, attributes->identity.inode});
  Status status = runtime.backend().remove(path);
  if (status.ok() && slot) runtime.drain().discard(*slot, 0);
  return status;
}

// --- hints and view ---

Status OpenFile::set_hints(const Hints& hints) {
  const std::int64_t limit = hints.limit(context_.runtime.default_limit());
  if (limit > 0) context_.runtime.add_limit(limit);
  if (limit_ > 0) context_.runtime.remove_limit(limit_);
  limit_ = limit;
  hints_ = hints;
  choose_staging();
  return comm_->barrier();
}

Status OpenFile::set_view(const Status& mine, const view::FileView& view) {
  if (Status status = comm::agree(*comm_, mine); !status) return status;  // by all ranks
  view_ = view;
  position_ = 0;
  staged_io_.view_changed();
  direct_io_.view_changed();
  Status reset = comm_->rank() == 0 ? shared_pointer_->set(0) : Status();
  return comm::agree(*comm_, reset);  // by all ranks
}

// --- transfers ---

Status OpenFile::check(const Transfer& transfer, bool writing) const {
  if (!transfer.precondition.ok()) return transfer.precondition;
  if (writing && mode_.access == storage::Access::read_only) {
    return Status(Code::read_only, "the file was opened for reading only").on_path(path());
  }
  if (!writing && mode_.access == storage::Access::write_only) {
    return Status(Code::access_denied, "the file was opened for writing only").on_path(path());
  }
  if (transfer.offset < 0) return Status(Code::bad_argument, fmt::format("offset {} is negative", transfer.offset));
  if (transfer.length % view_.etype_bytes() != 0) {
    return Status(Code::io, fmt::format("{} bytes are not a whole number of etypes of {} bytes", transfer.length,
                                        view_.etype_bytes()));
  }
  return {};
}

collective::Call OpenFile::call_for(const Transfer& transfer) const {
  collective::Call call;
  call.view = &view_;
  call.memory = transfer.memory;
  call.precondition = transfer.precondition;
  if (transfer.precondition.ok()) call.range = {transfer.offset * view_.etype_bytes(), transfer.length};
  return call;
}

Status OpenFile::report(const char* what) const {
  const journal::PackedError error =
      context_.runtime.node().file(context_.slot()).error.load(std::memory_order_acquire);
  return Status(static_cast<Code>(error.code), fmt::format("{} in the background (errno {})", what, error.errno_value))
      .on_path(path());
}

// Alone: what is stuck elsewhere counts too. In a collective call every rank with something stuck makes its own attempt and tells;
// what another one holds is not known before it has tried.
Status OpenFile::background_error() {
  if (Status status = own_background_error(); !status) return status;
  return others_background_error();
}

Status OpenFile::own_background_error() {
  const journal::FileSlot& slot = context_.runtime.node().file(context_.slot());
  const std::uint32_t epoch = slot.error.load(std::memory_order_acquire).epoch;
  if (epoch != seen_error_epoch_) {
    seen_error_epoch_ = epoch;
    return report("an earlier write failed");
  }
  if (slot.stuck_owners.load(std::memory_order_relaxed) == 0) return {};
  // Reported before, and not over yet as far as we know: see whether it is.
  drain::Drain& drain = context_.runtime.drain();
  drain.retry(context_.slot());
  Status status = drain.wait(context_.slot(), context_.progress());
  if (!status) seen_error_epoch_ = slot.error.load(std::memory_order_acquire).epoch;
  return status;
}

Status OpenFile::others_background_error() const {
  if (context_.runtime.node().file(context_.slot()).stuck_owners.load(std::memory_order_relaxed) == 0) return {};
  return report("an earlier write of another process failed");
}

// What a collective call returned was returned by every rank: no reason to report it again.
void OpenFile::mark_reported(const Status& status) {
  if (!status.ok())
    seen_error_epoch_ = context_.runtime.node().file(context_.slot()).error.load(std::memory_order_acquire).epoch;
}

void OpenFile::count_written(std::int64_t bytes, bool staged) {
  context_.runtime.activity().wrote(bytes);
  if (staged) context_.runtime.activity().staged(bytes);
}

Status OpenFile::write(const Transfer& transfer) {
  const InsideCall inside(context_.runtime);
  const TraceScope scope(context_.runtime, "write", path(), transfer.length);
  Status status = check(transfer, true);
  if (status.ok()) status = background_error();
  if (!status) return status;
  choose_staging();
  const collective::Call call = call_for(transfer);
  if (call.range.length == 0) return {};
  status = atomic_ ? write_locked(call) : local_.write_independent(call);
  if (status.ok()) count_written(transfer.length, context_.staging_alone);
  return status;
}

Result<std::int64_t> OpenFile::read(const Transfer& transfer) {
  const InsideCall inside(context_.runtime);
  const TraceScope scope(context_.runtime, "read", path(), transfer.length);
  if (Status status = check(transfer, false); !status) return status;
  const collective::Call call = call_for(transfer);
  if (call.range.length == 0) return std::int64_t{0};
  Result<std::int64_t> end = local_.file_end();
  if (!end) return end;
  Result<std::int64_t> got = atomic_ ? read_locked(call) : local_.read(call, *end);
  if (got.ok()) context_.runtime.activity().read(*got);
  return got;
}

Status OpenFile::write_all(const Transfer& transfer) {
  const InsideCall inside(context_.runtime);
  const TraceScope scope(context_.runtime, "write_all", path(), transfer.length);
  Transfer checked = transfer;
  checked.precondition = check(transfer, true);
  if (checked.precondition.ok()) checked.precondition = own_background_error();
  choose_staging();
  const collective::Call call = call_for(checked);
  Status status;
  if (atomic_) {
    Status mine = call.precondition;
    if (mine.ok() && call.range.length > 0) mine = write_locked(call);
    status = comm::agree(*comm_, mine);  // by all ranks
  } else {
    collective::CollectiveIo& io = context_.staging ? staged_io_ : direct_io_;
    status = io.write(call, hints_.write_policy());
    // Ranks of other nodes ask the file system how long the file is.
    if (status.ok() && context_.staging && comm_->node_count() > 1 && comm_->rank() == 0)
      (void)context_.storage().grow(io.last_end());
  }
  if (status.ok()) count_written(transfer.length, context_.staging);
  mark_reported(status);
  return status;
}

Result<std::int64_t> OpenFile::read_all(const Transfer& transfer) {
  const InsideCall inside(context_.runtime);
  const TraceScope scope(context_.runtime, "read_all", path(), transfer.length);
  Transfer checked = transfer;
  checked.precondition = check(transfer, false);
  const collective::Call call = call_for(checked);
  Result<std::int64_t> got = std::int64_t{0};
  if (atomic_) {
    Status mine = call.precondition;
    if (mine.ok() && call.range.length > 0) {
      got = read_locked(call);
      mine = got.status();
    }
    if (Status status = comm::agree(*comm_, mine); !status) return status;  // by all ranks
  } else {
    got = direct_io_.read(call, hints_.read_policy());
  }
  if (got.ok()) context_.runtime.activity().read(*got);
  return got;
}

// Atomic mode (MPI-4.1 §14.6.1): one lock over everything the call touches, so that conflicting calls happen one after the other.
Status OpenFile::write_locked(const collective::Call& call) {
  const extent::Extent hull = view_.bounds(call.range.position, call.range.length);
  if (Status status = context_.storage().lock(hull.offset, hull.length, true); !status) return status;
  Status status = local_.write_independent(call);  // staging is off: into the file
  Status unlocked = context_.storage().unlock(hull.offset, hull.length);
  return status.ok() ? unlocked : status;
}

Result<std::int64_t> OpenFile::read_locked(const collective::Call& call) {
  const extent::Extent hull = view_.bounds(call.range.position, call.range.length);
  if (Status status = context_.storage().lock(hull.offset, hull.length, false); !status) return status;
  Result<std::int64_t> end = local_.file_end();
  Result<std::int64_t> got = end.ok() ? local_.read(call, *end) : end;
  if (Status unlocked = context_.storage().unlock(hull.offset, hull.length); got.ok() && !unlocked.ok())
    return unlocked;
  return got;
}

}  // namespace spillway::file
