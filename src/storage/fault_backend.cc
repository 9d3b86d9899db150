#include "storage/fault_backend.h"

#include <utility>

namespace spillway::storage {

void FaultPlan::add(const Fault& fault) {
  base::MutexLock lock(mutex_);
  faults_.push_back(fault);
}

void FaultPlan::clear() {
  base::MutexLock lock(mutex_);
  faults_.clear();
}

std::int64_t FaultPlan::calls() const {
  base::MutexLock lock(mutex_);
  return calls_;
}

std::int64_t FaultPlan::injected() const {
  base::MutexLock lock(mutex_);
  return injected_;
}

void FaultPlan::set_observer(std::function<void(Operation, const std::string&)> observer) {
  base::MutexLock lock(mutex_);
  observer_ = std::move(observer);
}

FaultPlan::Verdict FaultPlan::judge(Operation operation, const std::string& path) {
  std::function<void(Operation, const std::string&)> observer;
  {
    base::MutexLock lock(mutex_);
    observer = observer_;
  }
  if (observer) observer(operation, path);

  base::MutexLock lock(mutex_);
  ++calls_;
  for (Fault& fault : faults_) {
    if (fault.operation != operation || fault.count == 0) continue;
    if (path.find(fault.path_substring) == std::string::npos) continue;
    if (fault.skip > 0) {
      --fault.skip;
      continue;
    }
    if (fault.count > 0) --fault.count;
    ++injected_;
    return {fault.errno_value, fault.torn};
  }
  return {};
}

namespace {

class FaultFile final : public File {
 public:
  FaultFile(std::unique_ptr<File> inner, std::shared_ptr<FaultPlan> plan, std::string path)
      : inner_(std::move(inner)), plan_(std::move(plan)), path_(std::move(path)) {}

  Result<FileAttributes> attributes() override {
    if (Status status = judge(Operation::attributes); !status) return status;
    return inner_->attributes();
  }
  Status write(std::int64_t offset, std::span<const iovec> pieces) override {
    const FaultPlan::Verdict verdict = plan_->judge(Operation::write, path_);
    if (verdict.torn) {
      if (Status status = write_half(offset, pieces); !status) return status;
    }
    if (verdict.errno_value != 0)
      return Status::from_errno(verdict.errno_value, "write").at_offset(offset).on_path(path_);
    return inner_->write(offset, pieces);
  }
  Result<std::int64_t> read(std::int64_t offset, std::span<std::byte> buffer) override {
    if (Status status = judge(Operation::read); !status) return status.at_offset(offset);
    return inner_->read(offset, buffer);
  }
  Status truncate(std::int64_t bytes) override {
    if (Status status = judge(Operation::truncate); !status) return status;
    return inner_->truncate(bytes);
  }
  Status grow(std::int64_t bytes) override {
    if (Status status = judge(Operation::grow); !status) return status;
    return inner_->grow(bytes);
  }
  Status preallocate(std::int64_t bytes) override {
    if (Status status = judge(Operation::preallocate); !status) return status;
    return inner_->preallocate(bytes);
  }
  Status sync() override {
    if (Status status = judge(Operation::sync); !status) return status;
    return inner_->sync();
  }
  Status close() override {
    const Status injected = judge(Operation::close);
    Status status = inner_->close();
    return injected.ok() ? status : injected;
  }
  Status lock(std::int64_t offset, std::int64_t length, bool exclusive) override {
    if (Status status = judge(Operation::lock); !status) return status;
    return inner_->lock(offset, length, exclusive);
  }
  Status unlock(std::int64_t offset, std::int64_t length) override { return inner_->unlock(offset, length); }

 private:
  Status judge(Operation operation) {
    const FaultPlan::Verdict verdict = plan_->judge(operation, path_);
    if (verdict.errno_value == 0) return {};
    return Status::from_errno(verdict.errno_value, "injected").on_path(path_);
  }
  Status write_half(std::int64_t offset, std::span<const iovec> pieces) {
    std::vector<iovec> half(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>((pieces.size() + 1) / 2));
    if (half.size() == 1) half[0].iov_len /= 2;
    return inner_->write(offset, half);
  }

  std::unique_ptr<File> inner_;
  std::shared_ptr<FaultPlan> plan_;
  std::string path_;
};

class FaultBackend final : public Backend {
 public:
  FaultBackend(std::shared_ptr<Backend> inner, std::shared_ptr<FaultPlan> plan)
      : inner_(std::move(inner)), plan_(std::move(plan)) {}

  Result<std::unique_ptr<File>> open(const std::string& path, const OpenOptions& options) override {
    if (Status status = judge(Operation::open, path); !status) return status;
    Result<std::unique_ptr<File>> inner = inner_->open(path, options);
    if (!inner) return inner;
    return std::unique_ptr<File>(std::make_unique<FaultFile>(std::move(inner).value(), plan_, path));
  }
  Status remove(const std::string& path) override {
    if (Status status = judge(Operation::remove, path); !status) return status;
    return inner_->remove(path);
  }
  Result<FileAttributes> attributes(const std::string& path) override {
    if (Status status = judge(Operation::attributes, path); !status) return status;
    return inner_->attributes(path);
  }

 private:
  Status judge(Operation operation, const std::string& path) {
    const FaultPlan::Verdict verdict = plan_->judge(operation, path);
    if (verdict.errno_value == 0) return {};
    return Status::from_errno(verdict.errno_value, "injected").on_path(path);
  }
  std::shared_ptr<Backend> inner_;
  std::shared_ptr<FaultPlan> plan_;
};

}  // namespace

std::unique_ptr<Backend> make_fault_backend(std::shared_ptr<Backend> inner, std::shared_ptr<FaultPlan> plan) {
  return std::make_unique<FaultBackend>(std::move(inner), std::move(plan));
}

}  // namespace spillway::storage
