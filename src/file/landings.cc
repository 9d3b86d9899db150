#include "file/landings.h"

#include <fmt/format.h>

#include <algorithm>

#include "journal/record.h"
#include "storage/write_runs.h"

namespace spillway::file {
namespace {

// From here on it is cheaper to enter a whole segment's pages at once than to fault them in one by one.
constexpr std::int64_t kPopulateBytesMin = 64 * 1024;

collective::LandingRef ref_of(const journal::Journal& journal, const journal::Journal::Appended& appended) {
  return {journal.process(), appended.id.segment, appended.id.offset, appended.view.bounds()};
}

collective::LandingView resolve_in(journal::Node& node, const collective::LandingRef& ref, std::int64_t bytes) {
  // The owner is in this call and so alive: its journal is there.
  const std::shared_ptr<journal::JournalMapping> journal = node.journal(ref.owner);
  if (bytes >= kPopulateBytesMin) journal->populate_once(ref.segment);
  const journal::RecordView record = journal::record_view(journal->segment_data(ref.segment) + ref.offset);
  return {record.runs, record.payload};
}

std::int64_t bytes_left(extent::RunCursor cursor) {
  std::int64_t bytes = -cursor.done;
  for (; !cursor.at_end(); ++cursor.index) bytes += (*cursor.runs)[cursor.index].length;
  return bytes;
}

// Appends scratch records for what the cursor has left, as far as the scratch space of one round goes.
Status append_scratch(IoContext& context, extent::RunCursor& cursor, std::vector<journal::RecordId>& round,
                      const std::function<Status(const journal::Journal::Appended&)>& use) {
  while (!cursor.at_end() && round.size() < collective::WriteLanding::kRefsMax) {
    const journal::Journal::Append what{journal::kNone, {}, INT64_MAX, nullptr};
    Result<journal::Journal::Appended> appended =
        round.empty() ? append_waiting(context, cursor, what) : context.runtime.journal().append(cursor, what);
    if (!appended.ok() && appended.status().code() == Code::would_block) break;
    if (!appended.ok()) return appended.status();
    round.push_back(appended->id);
    if (Status status = use(*appended); !status) return status;
  }
  return {};
}

void abandon_all(IoContext& context, std::vector<journal::RecordId>& round) {
  for (const journal::RecordId& id : round) context.runtime.journal().abandon(id);
  round.clear();
}

}  // namespace

// --- staged ---

Status StagedLanding::accept(extent::RunCursor& cursor, std::vector<collective::LandingRef>& refs) {
  journal::Journal& journal = context_.runtime.journal();
  const journal::CommitRule commit{journal::CommitKind::by_team, context_.commit_word,
                                   context_.comm.node_team().next_commit()};
  // What does not fit goes in rounds of half the buffer, so that one half drains while the other fills (ABT §3.2).
  const std::int64_t left = bytes_left(cursor);
  std::int64_t round_bytes = left <= journal.limit() ? left : std::max<std::int64_t>(journal.limit() / 2, 1);
  while (!cursor.at_end() && refs.size() < kRefsMax && round_bytes > 0) {
    const journal::Journal::Append what{context_.slot(), commit, round_bytes, nullptr};
    // Only for the first piece is it worth keeping everyone waiting.
    Result<journal::Journal::Appended> appended =
        refs.empty() ? append_waiting(context_, cursor, what) : journal.append(cursor, what);
    if (!appended.ok() && appended.status().code() == Code::would_block) break;
    if (!appended.ok()) return appended.status();
    round_.push_back(appended->id);
    round_bytes -= static_cast<std::int64_t>(appended->view.header->payload_bytes);
    refs.push_back(ref_of(journal, *appended));
  }
  return {};
}

collective::LandingView StagedLanding::resolve(const collective::LandingRef& ref, std::int64_t bytes) {
  return resolve_in(context_.runtime.node(), ref, bytes);
}

Status StagedLanding::finish(bool keep) {
  for (const journal::RecordId& id : round_) {
    if (keep) {
      context_.runtime.journal().commit(id);
      context_.runtime.drain().submit(id, context_.target);
    } else {
      context_.runtime.journal().abandon(id);
    }
  }
  round_.clear();
  return {};
}

// --- direct ---

Status DirectLanding::accept(extent::RunCursor& cursor, std::vector<collective::LandingRef>& refs) {
  return append_scratch(context_, cursor, round_, [&](const journal::Journal::Appended& appended) {
    refs.push_back(ref_of(context_.runtime.journal(), appended));
    return Status();
  });
}

collective::LandingView DirectLanding::resolve(const collective::LandingRef& ref, std::int64_t bytes) {
  return resolve_in(context_.runtime.node(), ref, bytes);
}

Status DirectLanding::finish(bool keep) {
  Status status;
  for (const journal::RecordId& id : round_) {
    if (!keep || !status.ok()) break;
    const journal::RecordView record = context_.runtime.journal().view(id);
    status = settle(context_, record.bounds());
    if (status.ok()) status = storage::write_runs(context_.storage(), record.runs, record.payload);
  }
  abandon_all(context_, round_);
  return status;
}

// --- reads ---

Status ScratchReadLanding::fetch(extent::RunCursor& cursor, std::vector<collective::LandingRef>& refs) {
  return append_scratch(context_, cursor, round_, [&](const journal::Journal::Appended& appended) {
    refs.push_back(ref_of(context_.runtime.journal(), appended));
    return read_runs(context_, appended.view.runs, appended.view.payload);
  });
}

collective::LandingView ScratchReadLanding::resolve(const collective::LandingRef& ref, std::int64_t bytes) {
  return resolve_in(context_.runtime.node(), ref, bytes);
}

void ScratchReadLanding::release() { abandon_all(context_, round_); }

}  // namespace spillway::file
