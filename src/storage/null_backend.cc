#include "storage/null_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/mutex.h"

namespace spillway::storage {
namespace {

struct Entry {
  std::uint64_t inode = 0;
  std::int64_t bytes = 0;
  std::int64_t links = 1;
};

// Shared by the backend and its files, which may outlive it.
struct Directory {
  base::Mutex mutex;
  std::map<std::string, std::shared_ptr<Entry>> entries SPILLWAY_GUARDED_BY(mutex);
  std::uint64_t next_inode SPILLWAY_GUARDED_BY(mutex) = 1;
};

FileAttributes attributes_of(const Entry& entry) {
  FileAttributes attributes;
  attributes.identity = {0, entry.inode};
  attributes.bytes = entry.bytes;
  attributes.links = entry.links;
  return attributes;
}

class NullFile final : public File {
 public:
  NullFile(std::shared_ptr<Directory> directory, std::shared_ptr<Entry> entry)
      : directory_(std::move(directory)), entry_(std::move(entry)) {}

  Result<FileAttributes> attributes() override {
    base::MutexLock lock(directory_->mutex);
    return attributes_of(*entry_);
  }
  Status write(std::int64_t offset, std::span<const iovec> pieces) override {
    for (const iovec& piece : pieces) offset += static_cast<std::int64_t>(piece.iov_len);
    return grow(offset);
  }
  Result<std::int64_t> read(std::int64_t offset, std::span<std::byte> buffer) override {
    base::MutexLock lock(directory_->mutex);
    const std::int64_t bytes =
        std::clamp<std::int64_t>(entry_->bytes - offset, 0, static_cast<std::int64_t>(buffer.size()));
    std::memset(buffer.data(), 0, static_cast<std::size_t>(bytes));
    return bytes;
  }
  Status truncate(std::int64_t bytes) override {
    base::MutexLock lock(directory_->mutex);
    entry_->bytes = bytes;
    return {};
  }
  Status grow(std::int64_t bytes) override {
    base::MutexLock lock(directory_->mutex);
    entry_->bytes = std::max(entry_->bytes, bytes);
    return {};
  }
  Status preallocate(std::int64_t bytes) override { return grow(bytes); }
  Status sync() override { return {}; }
  Status close() override { return {}; }
  Status lock(std::int64_t, std::int64_t, bool) override { return {}; }
  Status unlock(std::int64_t, std::int64_t) override { return {}; }

 private:
  std::shared_ptr<Directory> directory_;
  std::shared_ptr<Entry> entry_;
};

class NullBackend final : public Backend {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, const OpenOptions& options) override {
    base::MutexLock lock(directory_->mutex);
    std::shared_ptr<Entry>& entry = directory_->entries[path];
    if (entry != nullptr && options.create && options.exclusive) {
      return Status(Code::file_exists, fmt::format("open: File exists ({})", path));
    }
    if (entry == nullptr) {
      if (!options.create) {
        directory_->entries.erase(path);
        return Status(Code::no_such_file, fmt::format("open: No such file ({})", path));
      }
      entry = std::make_shared<Entry>(Entry{.inode = directory_->next_inode++});
    }
    return std::unique_ptr<File>(std::make_unique<NullFile>(directory_, entry));
  }
  Status remove(const std::string& path) override {
    base::MutexLock lock(directory_->mutex);
    const auto found = directory_->entries.find(path);
    if (found == directory_->entries.end())
      return Status(Code::no_such_file, fmt::format("delete: No such file ({})", path));
    found->second->links = 0;
    directory_->entries.erase(found);
    return {};
  }
  Result<FileAttributes> attributes(const std::string& path) override {
    base::MutexLock lock(directory_->mutex);
    const auto found = directory_->entries.find(path);
    if (found == directory_->entries.end())
      return Status(Code::no_such_file, fmt::format("stat: No such file ({})", path));
    return attributes_of(*found->second);
  }

 private:
  std::shared_ptr<Directory> directory_ = std::make_shared<Directory>();
};

}  // namespace

std::unique_ptr<Backend> make_null_backend() { return std::make_unique<NullBackend>(); }

}  // namespace spillway::storage
