#include "drain/drain.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/uio.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <csignal>

#include "base/inside.h"
#include "base/log.h"
#include "storage/write_runs.h"

namespace spillway::drain {
namespace {

constexpr std::int64_t kBatchBytesMax = 4 << 20;
constexpr std::size_t kBatchRecordsMax = 256;
constexpr std::int64_t kWaitNs = 1'000'000;
constexpr int kTurnsBetweenLivenessChecks = 1000;
// While the program's ranks are inside I/O calls the cores are theirs, up to this long after the last record came.
constexpr std::int64_t kHoldBackNs = 5'000'000;
// Checksumming may add this share to the time of a write, at this many bytes a nanosecond.
constexpr std::int64_t kSealShare = 20;
constexpr std::int64_t kSealBytesPerNs = 8;
// The ranks of a collective call retry at nearly the same time: what another one holds counts as failed again only after this long.
constexpr std::int64_t kRetryTogetherNs = 200'000'000;
constexpr std::int64_t kHousekeepingNs = 500'000'000;

// Makes the failure known to every rank of the node.
void latch(journal::FileSlot& slot, const Status& status) {
  journal::PackedError now = slot.error.load(std::memory_order_relaxed);
  journal::PackedError next{};
  do {
    next = {static_cast<std::uint16_t>(status.code()), static_cast<std::uint16_t>(status.errno_value()), now.epoch + 1};
  } while (!slot.error.compare_exchange_weak(now, next, std::memory_order_release, std::memory_order_relaxed));
}

}  // namespace

Drain::~Drain() { assert(!thread_.joinable()); }

void Drain::start() {
  // The host's handlers must never run here: they may touch what only the program's threads may.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "spillway-drain");
}

void Drain::finish() {
  std::vector<std::uint32_t> stuck;
  {
    base::MutexLock lock(mutex_);
    for (const auto& [slot, state] : files_) {
      if (!state.stuck.empty()) stuck.push_back(slot);
    }
  }
  for (const std::uint32_t slot : stuck) retry(slot);
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
    paused_ = false;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// --- the foreground's side ---

void Drain::submit(const journal::RecordId& id, std::shared_ptr<Target> target) {
  const std::int64_t now_ns = parts_.clock.now_ns();
  {
    base::MutexLock lock(mutex_);
    newest_ns_ = now_ns;
    FileState& state = files_[target->slot];
    if (state.submitted == state.done) state.newest_sequence = 0;  // the slot may be another file's by now
    ++state.submitted;
    Item item{id, std::move(target)};
    const auto place = place_for(item);
    queue_.insert(place, std::move(item));
    ++unsealed_;
  }
  work_.notify_one();
}

std::uint64_t Drain::sequence(const Item& item) const { return parts_.journal.view(item.id).header->sequence; }

// Two threads of the program may submit in the other order than they began in. If processes drained in orders that differ from that
// of the sequence numbers, they could wait for each other's older records for ever.
std::deque<Drain::Item>::iterator Drain::place_for(const Item& item) {
  const std::uint64_t number = sequence(item);
  std::uint64_t& newest = files_[item.target->slot].newest_sequence;
  if (number > newest) {
    newest = number;
    return queue_.end();
  }
  return std::find_if(queue_.begin(), queue_.end(), [&](const Item& other) {
    return !other.is_close() && other.target->slot == item.target->slot && sequence(other) > number;
  });
}

void Drain::submit_close(std::shared_ptr<Target> target) {
  {
    base::MutexLock lock(mutex_);
    ++files_[target->slot].submitted;
    queue_.push_back({{}, std::move(target)});
    ++unsealed_;
  }
  work_.notify_one();
}

Status Drain::wait(std::uint32_t slot, const std::function<void()>& progress) {
  std::uint64_t goal = 0;
  for (bool first = true;; first = false) {
    {
      base::MutexLock lock(mutex_);
      const auto found = files_.find(slot);
      if (found == files_.end()) return {};
      FileState& state = found->second;
      if (first) goal = state.submitted;
      if (!state.stuck.empty()) return state.failure;
      if (state.done >= goal) return {};
      ++waiters_;
      if (first) work_.notify_one();
      changed_.wait_for(mutex_, std::chrono::nanoseconds(kWaitNs));
      --waiters_;
    }
    progress();
  }
}

void Drain::retry(std::uint32_t slot) {
  {
    base::MutexLock lock(mutex_);
    const auto found = files_.find(slot);
    if (found == files_.end() || found->second.stuck.empty()) return;
    std::deque<Item>& stuck = found->second.stuck;
    // Older than anything of this file in the queue.
    queue_.insert(queue_.begin(), stuck.begin(), stuck.end());
    stuck.clear();
    found->second.retried_ns = parts_.clock.now_ns();
    parts_.node.file(slot).stuck_owners.fetch_sub(1, std::memory_order_relaxed);
  }
  work_.notify_one();
}

bool Drain::busy_with(std::uint32_t slot) const {
  return std::any_of(in_flight_.begin(), in_flight_.end(), [&](const Item& item) { return item.target->slot == slot; });
}

void Drain::discard(std::uint32_t slot, std::int64_t from) {
  std::vector<journal::RecordId> dropped;
  {
    base::MutexLock lock(mutex_);
    const auto found = files_.find(slot);
    if (found == files_.end()) return;
    FileState& state = found->second;
    while (busy_with(slot)) changed_.wait(mutex_);
    const auto unwanted = [&](const Item& item) {
      return !item.is_close() && item.target->slot == slot && parts_.journal.view(item.id).bounds().offset >= from;
    };
    const auto drop = [&](std::deque<Item>& items) {
      for (auto it = items.begin(); it != items.end();) {
        if (!unwanted(*it)) {
          ++it;
          continue;
        }
        dropped.push_back(it->id);
        it = items.erase(it);
        ++state.done;
      }
    };
    const std::size_t sealed = queue_.size() - unsealed_;
    const std::size_t before = dropped.size();
    drop(queue_);
    // How many of the dropped ones were sealed does not matter: sealing twice is harmless, so take the safe side.
    unsealed_ = queue_.size() -
                std::min(queue_.size(), sealed > dropped.size() - before ? sealed - (dropped.size() - before) : 0);
    const bool was_stuck = !state.stuck.empty();
    drop(state.stuck);
    const auto is_close = [](const Item& item) { return item.is_close(); };
    if (was_stuck && std::all_of(state.stuck.begin(), state.stuck.end(), is_close)) {
      queue_.insert(queue_.begin(), state.stuck.begin(), state.stuck.end());
      state.stuck.clear();
      parts_.node.file(slot).stuck_owners.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  for (const journal::RecordId& id : dropped) parts_.journal.abandon(id);
  work_.notify_one();
  changed_.notify_all();
}

Status Drain::all_stuck(std::uint32_t slot) const {
  base::MutexLock lock(mutex_);
  if (!queue_.empty() || !in_flight_.empty()) return {};
  if (const auto own = files_.find(slot); own != files_.end() && !own->second.stuck.empty()) return own->second.failure;
  for (const auto& [other, state] : files_) {
    if (!state.stuck.empty()) return state.failure;
  }
  return {};
}

void Drain::pause() {
  base::MutexLock lock(mutex_);
  paused_ = true;
}

void Drain::resume() {
  {
    base::MutexLock lock(mutex_);
    paused_ = false;
  }
  work_.notify_all();
}

// --- the background thread ---

void Drain::run() {
  const base::Inside inside;
  std::vector<Item> batch;
  for (;;) {
    if (!take_batch(batch)) {
      base::MutexLock lock(mutex_);
      if (stopping_ && queue_.empty()) return;
      continue;
    }
    const std::int64_t begin_ns = parts_.clock.now_ns();
    const Status status = write_batch(batch);
    if (status.code() == Code::would_block) {
      put_back(batch, 0);
      continue;
    }
    complete(batch, status);
    last_write_ns_ = parts_.clock.now_ns() - begin_ns;
    seal_some();
  }
}

// What waits long is worth a checksum, by which recovery can tell whether the bytes are still those that were written. Where the storage
// is fast nothing waits long, and the cores are left alone.
void Drain::seal_some() {
  std::int64_t budget_bytes = last_write_ns_ / kSealShare * kSealBytesPerNs;
  for (;;) {
    Item item;
    {
      base::MutexLock lock(mutex_);
      if (unsealed_ == 0) return;
      item = queue_[queue_.size() - unsealed_];
      if (!item.is_close()) {
        budget_bytes -= static_cast<std::int64_t>(parts_.journal.view(item.id).header->payload_bytes);
        if (budget_bytes < 0) return;
        in_flight_.push_back(item);  // so that discard() leaves it alone meanwhile
      }
      --unsealed_;
    }
    if (item.is_close()) continue;
    parts_.journal.warm(item.id);
    parts_.journal.seal(item.id);
    {
      base::MutexLock lock(mutex_);
      in_flight_.clear();
    }
    changed_.notify_all();
  }
}

bool Drain::hold_back() {
  if (stopping_ || parts_.node.header().calls_inside.load(std::memory_order_relaxed) == 0) return false;
  return parts_.clock.now_ns() - newest_ns_ < kHoldBackNs && !parts_.journal.space_wanted() && waiters_ == 0;
}

bool Drain::take_batch(std::vector<Item>& batch) {
  batch.clear();
  {
    base::MutexLock lock(mutex_);
    while (!queue_.empty() && !paused_ && hold_back()) work_.wait_for(mutex_, std::chrono::nanoseconds(kWaitNs));
    std::int64_t bytes = 0;
    while (!paused_ && !queue_.empty() && (batch.empty() || extends(batch, queue_.front(), bytes))) {
      const Item& item = queue_.front();
      FileState& state = files_[item.target->slot];
      if (!state.stuck.empty()) {  // behind a failure of the same file
        state.stuck.push_back(item);
      } else {
        if (!item.is_close()) bytes += static_cast<std::int64_t>(parts_.journal.view(item.id).header->payload_bytes);
        batch.push_back(item);
      }
      queue_.pop_front();
      unsealed_ = std::min(unsealed_, queue_.size());
    }
    in_flight_ = batch;
    if (!batch.empty()) return true;
  }
  idle();
  return false;
}

void Drain::put_back(std::vector<Item>& batch, std::size_t kept) {
  {
    base::MutexLock lock(mutex_);
    const Item& first = batch[kept];
    const std::uint64_t number = sequence(first);
    const auto older = std::stable_partition(queue_.begin(), queue_.end(), [&](const Item& item) {
      return !item.is_close() && item.target->slot == first.target->slot && sequence(item) < number;
    });
    queue_.insert(older, batch.begin() + static_cast<std::ptrdiff_t>(kept), batch.end());
    unsealed_ = queue_.size();  // sealing twice is harmless
    batch.resize(kept);
    in_flight_ = batch;
  }
  changed_.notify_all();
}

bool Drain::older_queued(const Item& item) const {
  const std::uint64_t number = sequence(item);
  base::MutexLock lock(mutex_);
  return std::any_of(queue_.begin(), queue_.end(), [&](const Item& other) {
    return !other.is_close() && other.target->slot == item.target->slot && sequence(other) < number;
  });
}

bool Drain::extends(const std::vector<Item>& batch, const Item& item, std::int64_t bytes) const {
  const Item& last = batch.back();
  if (last.is_close() || item.is_close() || item.target != last.target || batch.size() >= kBatchRecordsMax)
    return false;
  const journal::RecordView record = parts_.journal.view(item.id);
  const journal::RecordView before = parts_.journal.view(last.id);
  return bytes + static_cast<std::int64_t>(record.header->payload_bytes) <= kBatchBytesMax && record.runs.size() == 1 &&
         before.runs.size() == 1 && before.runs[0].end() == record.runs[0].offset;
}

void Drain::idle() {
  if (parts_.journal.prefault()) return;
  {
    base::MutexLock lock(mutex_);
    if ((queue_.empty() || paused_) && !stopping_) work_.wait_for(mutex_, std::chrono::nanoseconds(kHousekeepingNs));
  }
  if (parts_.trace != nullptr) parts_.trace->flush();
}

bool Drain::older_elsewhere(const Item& item) const {
  const journal::RecordView record = parts_.journal.view(item.id);
  return parts_.pending.older_elsewhere(record.header->file, record.header->sequence, record.bounds());
}

Status Drain::wait_for_older(const Item& item) {
  const journal::RecordView record = parts_.journal.view(item.id);
  const journal::FileSlot& slot = parts_.node.file(record.header->file);
  for (int turn = 1;; ++turn) {
    const std::uint32_t seen = parts_.node.retired_event();
    if (!older_elsewhere(item)) return {};
    if (slot.stuck_owners.load(std::memory_order_relaxed) > 0 && !retried_lately(record.header->file)) {
      const journal::PackedError error = slot.error.load(std::memory_order_acquire);
      return Status(static_cast<Code>(error.code), "an older write of another process to the same place failed");
    }
    // Came late, and may be what the other process waits for.
    if (older_queued(item)) return Status(Code::would_block, "an older record was submitted later");
    if (turn % kTurnsBetweenLivenessChecks == 0) {
      // Recovery will write both in their order.
      if (parts_.node.has_dead_owner(record.header->file))
        return Status(Code::peer_lost, "another process died with an older write to the same place");
    }
    parts_.node.wait_retired(seen, kWaitNs);
  }
}

bool Drain::retried_lately(std::uint32_t slot) const {
  base::MutexLock lock(mutex_);
  const auto found = files_.find(slot);
  return found != files_.end() && found->second.retried_ns != 0 &&
         parts_.clock.now_ns() - found->second.retried_ns < kRetryTogetherNs;
}

Status Drain::write_batch(std::vector<Item>& batch) {
  Target& target = *batch.front().target;
  const base::Activity::Drain busy(parts_.activity);
  const std::int64_t begin_ns = parts_.clock.now_ns();
  if (batch.front().is_close()) {
    // What could be written has been; the descriptor goes with or without the storage's blessing.
    Status status = target.file->close();
    if (!status) {
      base::log_error(status.to_string());
      parts_.activity.failed(status);
      latch(parts_.node.file(target.slot), status);
    }
    return {};
  }
  std::int64_t bytes = 0;
  Status status;
  if (status = wait_for_older(batch.front()); !status) return status;
  // The first has its turn. Waiting with it in hand for the turn of a later one could be waiting for somebody who waits for the first.
  for (std::size_t i = 1; i < batch.size(); ++i) {
    if (older_elsewhere(batch[i])) put_back(batch, i);
  }
  for (const Item& item : batch) {
    parts_.journal.warm(item.id);
    bytes += static_cast<std::int64_t>(parts_.journal.view(item.id).header->payload_bytes);
  }
  if (batch.size() == 1) {
    const journal::RecordView record = parts_.journal.view(batch.front().id);
    status = storage::write_runs(*target.file, record.runs, record.payload);
  } else {
    std::vector<iovec> pieces;
    for (const Item& item : batch) {
      const journal::RecordView record = parts_.journal.view(item.id);
      pieces.push_back({record.payload, record.header->payload_bytes});
    }
    status = target.file->write(parts_.journal.view(batch.front().id).runs[0].offset, pieces);
  }
  if (parts_.trace != nullptr) parts_.trace->add({begin_ns, parts_.clock.now_ns(), "drain", bytes, target.path});
  return status;
}

void Drain::complete(const std::vector<Item>& batch, const Status& status) {
  const std::uint32_t slot = batch.front().target->slot;
  if (status.ok()) {
    for (const Item& item : batch) {
      if (!item.is_close()) parts_.journal.retire(item.id);
    }
  } else {
    base::log_error(fmt::format("{}; the bytes stay in the journal", status.to_string()));
    parts_.activity.failed(status);
    latch(parts_.node.file(slot), status);
  }
  {
    base::MutexLock lock(mutex_);
    in_flight_.clear();
    FileState& state = files_[slot];
    if (status.ok()) {
      state.done += batch.size();
    } else {
      set_aside(state, slot, batch, status);
    }
  }
  changed_.notify_all();
}

void Drain::set_aside(FileState& state, std::uint32_t slot, const std::vector<Item>& batch, const Status& status) {
  if (state.stuck.empty()) parts_.node.file(slot).stuck_owners.fetch_add(1, std::memory_order_relaxed);
  state.stuck.insert(state.stuck.begin(), batch.begin(), batch.end());
  state.failure = status;
}

}  // namespace spillway::drain
