#include "drain/recovery.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include "journal/journal.h"
#include "journal/node.h"
#include "journal/record.h"
#include "storage/write_runs.h"

namespace spillway::drain {
namespace {

using journal::FileSlot;
using journal::Journal;
using journal::JournalMapping;
using journal::Node;
using journal::ProcessEntry;
using journal::RecordHeader;
using journal::RecordState;
using journal::RecordView;
using journal::SegmentBytes;
using journal::SegmentDescriptor;
using journal::SegmentState;

struct FoundRecord {
  RecordView view;
  bool sound = true;  // its payload is what was written, as far as that was noted
};

struct Contents {
  std::map<std::uint32_t, std::vector<FoundRecord>> by_file;  // oldest first
  std::vector<std::string> damage;
};

bool payload_checks(const RecordHeader& header, const std::byte* payload) {
  return header.sealed == 0 ||
         header.payload_hash.load(std::memory_order_relaxed) == XXH3_64bits(payload, header.payload_bytes);
}

bool known(RecordState state) { return state >= RecordState::filling && state <= RecordState::abandoned; }

// Everything valid and not yet in its file, from all journals of the job.
Contents read_contents(Node& node) {
  Contents contents;
  for (std::uint32_t process = 0; process < node.process_count(); ++process) {
    if (!node.has_journal(process)) continue;
    const std::shared_ptr<JournalMapping> journal = node.journal(process);
    if (journal == nullptr) {
      contents.damage.push_back(fmt::format("{}: cannot be read", node.journal_path(process)));
      continue;
    }
    for (std::uint32_t i = 0; i < journal->header().segment_count; ++i) {
      const SegmentDescriptor& descriptor = journal->segment(i);
      const SegmentState state = descriptor.state.load(std::memory_order_acquire);
      if (state == SegmentState::free || state == SegmentState::limbo) continue;
      if (state != SegmentState::in_use) {
        contents.damage.push_back(
            fmt::format("{}: segment {}: its state does not check", node.journal_path(process), i));
        continue;
      }
      const SegmentBytes segment{journal->segment_data(i), descriptor.tail.load(std::memory_order_acquire),
                                 journal->header().segment_bytes};
      const Status status = journal::walk_segment(segment, [&](const RecordView& record, std::uint64_t offset) {
        const std::uint32_t file = record.header->file;
        if (file == journal::kNone) return true;
        if (file >= journal::kFilesMax || !known(record.header->state.load(std::memory_order_acquire))) {
          contents.damage.push_back(fmt::format("{}: segment {}, record at {}: its state does not check",
                                                node.journal_path(process), i, offset));
          return true;
        }
        if (!Journal::valid(node, *record.header)) return true;
        FoundRecord found{record, payload_checks(*record.header, record.payload)};
        if (!found.sound) {
          contents.damage.push_back(
              fmt::format("{}: segment {}, record at {}: its bytes are not those that were written",
                          node.journal_path(process), i, offset));
        }
        contents.by_file[file].push_back(found);
        return true;
      });
      if (!status)
        contents.damage.push_back(fmt::format("{}: segment {}: {}", node.journal_path(process), i, status.what()));
    }
  }
  for (auto& [file, records] : contents.by_file) {
    std::stable_sort(records.begin(), records.end(), [](const FoundRecord& a, const FoundRecord& b) {
      return a.view.header->sequence < b.view.header->sequence;
    });
  }
  return contents;
}

bool any_alive(const Node& node) {
  for (std::uint32_t i = 0; i < node.process_count(); ++i) {
    const ProcessEntry& entry = node.process(i);
    // alive() takes processes that left in order for alive: they are none of our concern.
    if (entry.live.load(std::memory_order_acquire) == 1 && node.alive(i)) return true;
  }
  return false;
}

void add_lost(RecoveredFile& file, const RecordView& record) {
  file.lost.insert(file.lost.end(), record.runs.begin(), record.runs.end());
}

class FileRecovery {
 public:
  FileRecovery(Node& node, storage::Backend& backend, const RecoveryOptions& options)
      : node_(node), backend_(backend), options_(options) {}

  RecoveredFile run(std::uint32_t slot, const std::vector<FoundRecord>& records) {
    RecoveredFile result;
    result.path = node_.file_path(slot);
    std::unique_ptr<storage::File> file;
    Status status = open(slot, result.path, file);
    for (const FoundRecord& record : records) {
      if (!status.ok() || !record.sound) {
        add_lost(result, record.view);
        continue;
      }
      if (!options_.dry_run) status = storage::write_runs(*file, record.view.runs, record.view.payload);
      if (status.ok()) {
        result.bytes_written += static_cast<std::int64_t>(record.view.header->payload_bytes);
      } else {
        add_lost(result, record.view);
      }
    }
    if (status.ok() && !options_.dry_run) status = file->sync();
    if (status.ok() && !options_.dry_run) mark_retired(records);
    if (file != nullptr) (void)file->close();
    if (!status)
      result.problem = status.to_string();
    else if (!result.lost.empty())
      result.problem = "bytes of the journal are damaged";
    std::sort(result.lost.begin(), result.lost.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
    result.lost = merged(result.lost);
    return result;
  }

 private:
  Status open(std::uint32_t slot, const std::string& path, std::unique_ptr<storage::File>& file) {
    const storage::OpenOptions options{.access =
                                           options_.dry_run ? storage::Access::read_only : storage::Access::read_write};
    Result<std::unique_ptr<storage::File>> opened = backend_.open(path, options);
    if (!opened) return opened.status();
    file = std::move(opened).value();
    Result<storage::FileAttributes> attributes = file->attributes();
    if (!attributes) return attributes.status();
    const FileSlot& expected = node_.file(slot);
    // A deleted file's inode is given to a new one soon.
    const bool same_age =
        expected.birth_ns == 0 || attributes->birth_ns == 0 || expected.birth_ns == attributes->birth_ns;
    if (attributes->identity == storage::FileIdentity{expected.device, expected.inode} && same_age) return {};
    return Status(Code::no_such_file,
                  fmt::format("the file that was written is not there any more: {} is another one now", path));
  }
  void mark_retired(const std::vector<FoundRecord>& records) const {
    for (const FoundRecord& record : records) {
      if (record.sound || options_.salvage)
        record.view.header->state.store(RecordState::retired, std::memory_order_release);
    }
  }
  static std::vector<extent::Extent> merged(const std::vector<extent::Extent>& sorted) {
    const extent::ExtentList list = extent::ExtentList::from_unsorted(sorted);
    return {list.begin(), list.end()};
  }

  Node& node_;
  storage::Backend& backend_;
  RecoveryOptions options_;
};

void remove_files(Node& node) {
  for (std::uint32_t i = 0; i < node.process_count(); ++i) {
    if (node.has_journal(i)) node.remove_process(i, false);
  }
  node.leave();
}

LeftJob look_at(const std::string& directory, const std::string& name) {
  LeftJob job;
  job.directory = directory;
  job.job = name;
  Result<std::unique_ptr<Node>> node = Node::open_left_behind(directory);
  if (!node) {
    job.problem = node.status().what();
    return job;
  }
  job.alive = any_alive(**node);
  const Contents contents = read_contents(**node);
  for (const auto& [slot, records] : contents.by_file) {
    PendingFile file{(*node)->file_path(slot), static_cast<std::int64_t>(records.size()), 0};
    for (const FoundRecord& record : records)
      file.bytes += static_cast<std::int64_t>(record.view.header->payload_bytes);
    job.files.push_back(std::move(file));
  }
  if (!contents.damage.empty() && !job.alive) job.problem = contents.damage.front();
  return job;
}

}  // namespace

Result<std::vector<LeftJob>> list_jobs(const std::string& shm_dir) {
  const std::string mine = fmt::format("{}/spillway-{}", shm_dir, geteuid());
  std::vector<LeftJob> jobs;
  DIR* directory = opendir(mine.c_str());
  if (directory == nullptr) {
    if (errno == ENOENT && access(shm_dir.c_str(), F_OK) == 0) return jobs;
    return Status::from_errno(errno, "looking for jobs").on_path(errno == ENOENT ? shm_dir : mine);
  }
  std::vector<std::string> names;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) jobs.push_back(look_at(mine + "/" + name, name));
  return jobs;
}

Result<RecoveryReport> recover_job(const std::string& directory, storage::Backend& backend,
                                   const RecoveryOptions& options) {
  Result<std::unique_ptr<Node>> opened = Node::open_left_behind(directory);
  if (!opened) return opened.status();
  Node& node = **opened;
  if (any_alive(node)) return Status(Code::file_in_use, fmt::format("a process of {} still runs", directory));

  RecoveryReport report;
  const Contents contents = read_contents(node);
  report.damage = contents.damage;
  const bool may_write = contents.damage.empty() || options.salvage;
  RecoveryOptions how = options;
  how.dry_run = options.dry_run || !may_write;
  bool complete = may_write && !options.dry_run;
  FileRecovery recovery(node, backend, how);
  for (const auto& [slot, records] : contents.by_file) {
    report.files.push_back(recovery.run(slot, records));
    complete = complete && (report.files.back().problem.empty() || options.salvage);
  }
  if (complete) {
    remove_files(node);
    report.removed = true;
  }
  return report;
}

}  // namespace spillway::drain
