#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "drain/recovery.h"
#include "drain/test_job_image.h"
#include "storage/backend.h"

// For tests and fuzzing only.
namespace spillway::drain {

// The files that a job left behind, with any bytes of them changed, recovered into files in memory that know what may be written to
// them.
class DamagedJob {
 public:
  // Works in a folder of its own under `scratch_folder`.
  explicit DamagedJob(const std::string& scratch_folder) : image_(scratch_folder) {}

  [[nodiscard]] std::size_t part_count() const { return image_.parts().size(); }
  [[nodiscard]] std::size_t part_bytes(std::size_t part) const { return image_.parts()[part].bytes.size(); }

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
    report_ = recover_job(image_.job_folder(), targets, options);
    const bool refused = !report_.ok() || (!report_->damage.empty() && !options.salvage);
    for (const auto& [file, bytes] : image_.file_bytes()) {
      const bool there = unlink(image_.path(file).c_str()) == 0;
      if (refused && !there) complain(fmt::format("{} is gone although nothing was recovered", file));
    }
    unlink(image_.path("lock").c_str());
    if (report_.ok() && !report_->damage.empty() && !options.salvage && !written_.empty())
      complain("wrote although damaged");
    if (options.dry_run && !written_.empty()) complain("wrote in a dry run");
    return complaint_;
  }
  // Of the last recover().
  [[nodiscard]] const Result<RecoveryReport>& report() const { return report_; }
  [[nodiscard]] std::string content(const std::string& file) { return written_[file]; }

 private:
  using Part = JobImage::Part;
  using Run = JobImage::Run;

  void complain(const std::string& what) {
    if (complaint_.empty()) complaint_ = what;
  }

  void put_back(std::span<const Change> changes) {
    damaged_ = image_.parts();
    std::map<std::string, std::int64_t> sizes = image_.file_bytes();
    for (const Change& change : changes) {
      Part& part = damaged_[change.part];
      if (change.kind == Change::Kind::flip) {
        part.bytes[change.offset] ^= static_cast<std::byte>(change.mask);
      } else {
        sizes[part.file] = part.offset + static_cast<std::int64_t>(change.offset);
      }
    }
    std::filesystem::create_directories(image_.job_folder());
    std::filesystem::permissions(image_.job_folder(), std::filesystem::perms::owner_all);
    for (const auto& [file, bytes] : sizes) {
      const base::UniqueFd fd(open(image_.path(file).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
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
    for (const Run& run : image_.runs()) {
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

  JobImage image_;
  std::vector<Part> damaged_;  // the image's, with the changes
  std::map<std::string, std::string> written_;
  std::string complaint_;
  Result<RecoveryReport> report_{RecoveryReport{}};
};

}  // namespace spillway::drain
