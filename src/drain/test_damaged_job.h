#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "drain/recovery.h"
#include "journal/journal.h"

// For tests and fuzzing only: the files that a job of two processes left behind, with any bytes of them changed, recovered into
// files in memory that know what may be written to them.
namespace spillway::drain {

class DamagedJob {
 public:
  // Works in a folder of its own under `scratch_folder`, removed with the object.
  explicit DamagedJob(const std::string& scratch_folder) {
    folder_ = scratch_folder + "/spillway-damaged-XXXXXX";
    require(mkdtemp(folder_.data()) != nullptr);
    job_folder_ = journal::job_directory(folder_, "job");
    make_job();
    for (const auto& [file, bytes] : file_bytes_) read_parts(file);
    for (const auto& [file, bytes] : file_bytes_) unlink(path(file).c_str());
  }
  ~DamagedJob() { std::filesystem::remove_all(folder_); }
  DamagedJob(const DamagedJob&) = delete;
  DamagedJob& operator=(const DamagedJob&) = delete;

  // The bytes in use of the job's files, in parts that follow each other loosely: a table, a header, a payload.
  [[nodiscard]] std::size_t part_count() const { return parts_.size(); }
  [[nodiscard]] std::size_t part_bytes(std::size_t part) const { return parts_[part].bytes.size(); }

  struct Change {
    enum class Kind { flip, cut } kind = Kind::flip;
    std::size_t part = 0;
    std::size_t offset = 0;  // of the byte in the part
    std::uint8_t mask = 0;   // exclusive or; unused by cut, which ends the part's file there
  };
  // Puts the job there with these changes and recovers it. Returns what recovery did that it must not do whatever the damage: a
  // write of bytes, or to a place, that no record holds, or any write although damage was found. Empty: nothing.
  std::string recover(std::span<const Change> changes, const RecoveryOptions& options) {
    put_back(changes);
    written_.clear();
    complaint_.clear();
    Targets targets(*this);
    report_ = recover_job(job_folder_, targets, options);
    for (const auto& [file, bytes] : file_bytes_) unlink(path(file).c_str());
    unlink(path("lock").c_str());
    if (report_.ok() && !report_->damage.empty() && !options.salvage && !written_.empty())
      complain("wrote although damaged");
    if (options.dry_run && !written_.empty()) complain("wrote in a dry run");
    return complaint_;
  }
  // Of the last recover().
  [[nodiscard]] const Result<RecoveryReport>& report() const { return report_; }
  [[nodiscard]] std::string content(const std::string& file) { return written_[file]; }

 private:
  struct Part {
    std::string file;  // in the job's folder
    std::int64_t offset = 0;
    std::vector<std::byte> bytes;
  };
  // One run of a record that was ever in the journals.
  struct Run {
    std::string target;
    extent::Extent extent;
    std::string bytes;
    std::string journal;  // where its record says that it is sealed, or nowhere
    std::int64_t sealed_offset = -1;
  };

  static void require(bool condition) {
    if (!condition) std::abort();
  }
  [[nodiscard]] std::string path(const std::string& file) const { return job_folder_ + "/" + file; }
  void complain(const std::string& what) {
    if (complaint_.empty()) complaint_ = what;
  }

  // --- the job as it was left ---

  struct Writer {
    journal::Journal& journal;
    std::uint32_t slot;
    std::string target;
  };
  journal::RecordId write(const Writer& writer, std::vector<extent::Extent> extents, const journal::CommitRule& rule,
                          bool seal) {
    const extent::ExtentList runs = extent::ExtentList::from_unsorted(std::move(extents));
    extent::RunCursor cursor{&runs, 0, 0};
    const auto appended = writer.journal.append(cursor, {writer.slot, rule, INT64_MAX});
    require(appended.ok() && cursor.at_end());
    const journal::RecordView& record = appended.value().view;
    for (std::uint64_t i = 0; i < record.header->payload_bytes; ++i) {
      record.payload[i] = static_cast<std::byte>(1 + (i * 7 + record.header->sequence * 31) % 255);
    }
    if (seal) writer.journal.seal(appended.value().id);
    const auto mapping = writer.journal.node().journal(writer.journal.process());
    const auto* flag = reinterpret_cast<const std::byte*>(&record.header->sealed);
    const char* bytes = reinterpret_cast<const char*>(record.payload);
    for (const extent::Extent& run : record.runs) {
      runs_.push_back({writer.target, run, std::string(bytes, static_cast<std::size_t>(run.length)),
                       fmt::format("journal.{}", writer.journal.process()),
                       seal ? flag - mapping->mapping().data() : -1});
      bytes += run.length;
    }
    return appended.value().id;
  }

  void make_job() {
    auto node = std::move(*journal::Node::attach(folder_, "job"));
    const std::uint32_t x = *node->acquire_file({1, 1}, "/x");
    const std::uint32_t y = *node->acquire_file({1, 2}, "/y");
    const std::uint64_t team = *node->allocate_block(4096);
    static_cast<std::atomic<std::uint32_t>*>(node->block(team))->store(1);
    {
      std::unique_ptr<journal::Journal> journals[2];
      for (auto& journal : journals) {
        journal = std::move(*journal::Journal::create(
            *node, {.segment_payload_bytes = 8192, .capacity_bytes = 4 * 8192, .scratch_bytes = 8192}));
        journal->set_limit(4 * 8192);
      }
      const Writer a_x{*journals[0], x, "/x"};
      const Writer a_y{*journals[0], y, "/y"};
      const Writer b_x{*journals[1], x, "/x"};
      journals[0]->commit(write(a_x, {{0, 100}}, {}, true));
      journals[0]->commit(write(a_x, {{200, 50}, {300, 50}}, {}, true));
      journals[0]->commit(write(a_y, {{1000, 500}}, {}, false));
      write(a_x, {{5000, 10}}, {}, true);                                       // never complete
      write(a_y, {{3000, 64}}, {journal::CommitKind::by_team, team, 1}, true);  // its team's commit is through
      write(a_y, {{4000, 64}}, {journal::CommitKind::by_team, team, 2}, true);  // this one is not
      const journal::RecordId drained = write(b_x, {{6000, 10}}, {}, true);
      journals[1]->commit(drained);
      journals[1]->commit(write(b_x, {{50, 100}}, {}, true));  // over the first
      journals[1]->retire(drained);
      for (const auto& journal : journals) {
        const std::string file = fmt::format("journal.{}", journal->process());
        file_bytes_[file] = static_cast<std::int64_t>(std::filesystem::file_size(path(file)));
      }
    }
    node->release_file(x);
    node->release_file(y);
    file_bytes_["node"] = static_cast<std::int64_t>(std::filesystem::file_size(path("node")));
  }

  // What is not zero, in runs that end where many zeros follow.
  void read_parts(const std::string& file) {
    constexpr std::size_t kGapMin = 48;
    const base::UniqueFd fd(open(path(file).c_str(), O_RDONLY | O_CLOEXEC));
    require(fd.valid());
    for (off_t at = lseek(fd.get(), 0, SEEK_DATA); at >= 0; at = lseek(fd.get(), at, SEEK_DATA)) {
      const off_t end = lseek(fd.get(), at, SEEK_HOLE);
      std::vector<std::byte> bytes(static_cast<std::size_t>(end - at));
      require(pread(fd.get(), bytes.data(), bytes.size(), at) == static_cast<ssize_t>(bytes.size()));
      std::size_t begin = bytes.size();
      std::size_t last = 0;
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] == std::byte{0}) continue;
        if (begin != bytes.size() && i - last > kGapMin) {
          add_part(file, at, bytes, begin, last + 1);
          begin = bytes.size();
        }
        if (begin == bytes.size()) begin = i;
        last = i;
      }
      if (begin != bytes.size()) add_part(file, at, bytes, begin, last + 1);
      at = end;
    }
  }
  void add_part(const std::string& file, std::int64_t at, const std::vector<std::byte>& bytes, std::size_t begin,
                std::size_t end) {
    parts_.push_back(
        {file,
         at + static_cast<std::int64_t>(begin),
         {bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.begin() + static_cast<std::ptrdiff_t>(end)}});
  }

  void put_back(std::span<const Change> changes) {
    damaged_ = parts_;
    std::map<std::string, std::int64_t> sizes = file_bytes_;
    for (const Change& change : changes) {
      Part& part = damaged_[change.part];
      if (change.kind == Change::Kind::flip) {
        part.bytes[change.offset] ^= static_cast<std::byte>(change.mask);
      } else {
        sizes[part.file] = part.offset + static_cast<std::int64_t>(change.offset);
      }
    }
    std::filesystem::create_directories(job_folder_);
    std::filesystem::permissions(job_folder_, std::filesystem::perms::owner_all);
    for (const auto& [file, bytes] : sizes) {
      const base::UniqueFd fd(open(path(file).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      require(fd.valid());
      for (const Part& part : damaged_) {
        if (part.file != file) continue;
        require(pwrite(fd.get(), part.bytes.data(), part.bytes.size(), part.offset) ==
                static_cast<ssize_t>(part.bytes.size()));
      }
      require(ftruncate(fd.get(), bytes) == 0);
    }
  }

  // --- what recovery writes ---

  // The record's header as it is now says that its bytes are checked.
  [[nodiscard]] bool still_sealed(const Run& run) const {
    for (const Part& part : damaged_) {
      const std::int64_t at = run.sealed_offset - part.offset;
      if (part.file != run.journal || at < 0 || at + 4 > static_cast<std::int64_t>(part.bytes.size())) continue;
      std::uint32_t flag = 0;
      std::memcpy(&flag, part.bytes.data() + at, sizeof flag);
      return flag != 0;
    }
    return false;
  }
  void wrote(const std::string& target, std::int64_t offset, std::string_view bytes) {
    const extent::Extent extent{offset, static_cast<std::int64_t>(bytes.size())};
    std::string& file = written_[target];
    file.resize(std::max(file.size(), static_cast<std::size_t>(extent.end())));
    file.replace(static_cast<std::size_t>(offset), bytes.size(), bytes);
    for (const Run& run : runs_) {
      if (run.target != target || run.extent != extent) continue;
      if (run.bytes != bytes && still_sealed(run)) complain(fmt::format("wrong bytes at {} of {}", offset, target));
      return;
    }
    complain(fmt::format("no record says {} bytes at {} of {}", bytes.size(), offset, target));
  }

  class Target final : public storage::File {
   public:
    Target(DamagedJob& job, std::string path) : job_(job), path_(std::move(path)) {}
    Result<storage::FileAttributes> attributes() override {
      return storage::FileAttributes{.identity = {1, path_ == "/x" ? 1U : 2U}};
    }
    Status write(std::int64_t offset, std::span<const iovec> pieces) override {
      for (const iovec& piece : pieces) {
        job_.wrote(path_, offset, {static_cast<const char*>(piece.iov_base), piece.iov_len});
        offset += static_cast<std::int64_t>(piece.iov_len);
      }
      return {};
    }
    Result<std::int64_t> read(std::int64_t, std::span<std::byte>) override { return unused(); }
    Status truncate(std::int64_t) override { return unused(); }
    Status grow(std::int64_t) override { return unused(); }
    Status preallocate(std::int64_t) override { return unused(); }
    Status sync() override { return {}; }
    Status close() override { return {}; }
    Status lock(std::int64_t, std::int64_t, bool) override { return unused(); }
    Status unlock(std::int64_t, std::int64_t) override { return unused(); }

   private:
    Status unused() {
      job_.complain("recovery did something else than writing");
      return Status(Code::unsupported, "not for recovery");
    }
    DamagedJob& job_;
    std::string path_;
  };
  class Targets final : public storage::Backend {
   public:
    explicit Targets(DamagedJob& job) : job_(job) {}
    Result<std::unique_ptr<storage::File>> open(const std::string& path, const storage::OpenOptions&) override {
      if (path != "/x" && path != "/y") return Status(Code::no_such_file, "gone").on_path(path);
      return std::unique_ptr<storage::File>(std::make_unique<Target>(job_, path));
    }
    Status remove(const std::string& path) override { return Status(Code::unsupported, "remove").on_path(path); }
    Result<storage::FileAttributes> attributes(const std::string& path) override {
      return Status(Code::unsupported, "attributes").on_path(path);
    }

   private:
    DamagedJob& job_;
  };

  std::string folder_;
  std::string job_folder_;
  std::vector<Part> parts_;
  std::vector<Run> runs_;
  std::map<std::string, std::int64_t> file_bytes_;  // of the job's files
  std::vector<Part> damaged_;                       // parts_ with the changes
  std::map<std::string, std::string> written_;
  std::string complaint_;
  Result<RecoveryReport> report_{RecoveryReport{}};
};

}  // namespace spillway::drain
