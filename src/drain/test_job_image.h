#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "journal/journal.h"

// For tests and fuzzing only.
namespace spillway::drain {

// Ends the test: what follows would make no sense.
inline void require(bool condition) {
  if (!condition) std::abort();
}

// The files that a job of two processes left behind, as bytes.
class JobImage {
 public:
  // Makes them in a folder of its own under `scratch_folder`, which stays until the object goes; the files do not.
  explicit JobImage(const std::string& scratch_folder) : folder_(scratch_folder + "/spillway-damaged-XXXXXX") {
    require(mkdtemp(folder_.data()) != nullptr);
    job_folder_ = journal::job_directory(folder_, "job");
    make_job();
    for (const auto& [file, bytes] : file_bytes_) read_parts(file);
    for (const auto& [file, bytes] : file_bytes_) unlink(path(file).c_str());
  }
  ~JobImage() { std::filesystem::remove_all(folder_); }
  JobImage(const JobImage&) = delete;
  JobImage& operator=(const JobImage&) = delete;

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

  [[nodiscard]] const std::string& job_folder() const { return job_folder_; }
  [[nodiscard]] std::string path(const std::string& file) const { return job_folder_ + "/" + file; }
  // What is not zero of the job's files, in parts that follow each other loosely: a table, a header, a payload.
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }
  // The files and their sizes.
  [[nodiscard]] const std::map<std::string, std::int64_t>& file_bytes() const { return file_bytes_; }

 private:
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

  std::string folder_;
  std::string job_folder_;
  std::vector<Part> parts_;
  std::vector<Run> runs_;
  std::map<std::string, std::int64_t> file_bytes_;
};

}  // namespace spillway::drain
