#include "storage/backend.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "storage/fault_backend.h"
#include "storage/null_backend.h"
#include "storage/posix_backend.h"

namespace spillway::storage {
namespace {

struct BackendKind {
  const char* name;
  bool keeps_bytes;
  std::shared_ptr<Backend> (*make)();
};
void PrintTo(const BackendKind& kind, std::ostream* out) { *out << kind.name; }

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    // In the working directory: a real file system, where O_DIRECT may mean something, rather than /tmp.
    std::string name = std::filesystem::current_path() / "spillway-storage-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::vector<std::byte> bytes_of(std::size_t count, unsigned seed) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i * 31 + i / 257 + seed) & 0xff);
  return bytes;
}

class BackendConformance : public testing::TestWithParam<BackendKind> {
 protected:
  std::unique_ptr<File> opened(const std::string& path) {
    Result<std::unique_ptr<File>> file = backend_->open(path, {.create = true});
    EXPECT_TRUE(file.ok()) << file.status().to_string();
    return std::move(file).value();
  }
  static std::int64_t size_of(File& file) {
    Result<FileAttributes> attributes = file.attributes();
    return attributes.ok() ? attributes->bytes : -1;
  }
  TemporaryDirectory directory_;
  std::shared_ptr<Backend> backend_ = GetParam().make();
};

TEST_P(BackendConformance, ReadsBackWhatManyPiecesWroteAtEveryAlignment) {
  auto file = opened(directory_.file("a"));
  const auto content = bytes_of(3 << 20, 7);
  auto* base = const_cast<std::byte*>(content.data());
  for (const std::int64_t offset :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{4096}, std::int64_t{4095}, std::int64_t{1} << 33}) {
    const iovec pieces[] = {
        {base, 5}, {base + 5, 0}, {base + 5, 1 << 20}, {base + 5 + (1 << 20), content.size() - 5 - (1 << 20)}};
    ASSERT_TRUE(file->write(offset, pieces).ok());
    EXPECT_EQ(size_of(*file), std::max(size_of(*file), offset + static_cast<std::int64_t>(content.size())));
    if (!GetParam().keeps_bytes) continue;
    std::vector<std::byte> back(content.size());
    Result<std::int64_t> got = file->read(offset, back);
    ASSERT_TRUE(got.ok()) << got.status().to_string();
    EXPECT_EQ(*got, static_cast<std::int64_t>(content.size()));
    EXPECT_EQ(back, content) << "at offset " << offset;
  }
  EXPECT_TRUE(file->close().ok());
}

TEST_P(BackendConformance, WritesPageAlignedMemoryAtPageAlignedOffsets) {
  auto file = opened(directory_.file("direct"));
  const std::size_t length = (1 << 20) + 12345;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(4096, 2 << 20));
  const auto content = bytes_of(2 << 20, 3);
  std::copy(content.begin(), content.end(), memory);
  for (const std::size_t misfit : {0, 1, 511, 4095}) {
    // Memory and file are misaligned alike: the middle can go directly, head and tail cannot.
    const iovec piece{memory + misfit, length};
    ASSERT_TRUE(file->write(static_cast<std::int64_t>(8192 + misfit), {&piece, 1}).ok());
    if (!GetParam().keeps_bytes) continue;
    std::vector<std::byte> back(length);
    ASSERT_EQ(*file->read(static_cast<std::int64_t>(8192 + misfit), back), static_cast<std::int64_t>(length));
    EXPECT_TRUE(std::equal(back.begin(), back.end(), content.begin() + static_cast<std::ptrdiff_t>(misfit))) << misfit;
  }
  std::free(memory);
  EXPECT_TRUE(file->close().ok());
}

TEST_P(BackendConformance, ReadStopsAtTheEnd) {
  auto file = opened(directory_.file("a"));
  auto content = bytes_of(1000, 1);
  const iovec piece{content.data(), content.size()};
  ASSERT_TRUE(file->write(0, {&piece, 1}).ok());
  std::vector<std::byte> buffer(600);
  EXPECT_EQ(*file->read(700, buffer), 300);
  EXPECT_EQ(*file->read(1000, buffer), 0);
  EXPECT_EQ(*file->read(5000, buffer), 0);
  EXPECT_TRUE(file->close().ok());
}

TEST_P(BackendConformance, GrowOnlyGrows) {
  auto file = opened(directory_.file("a"));
  ASSERT_TRUE(file->grow(10000).ok());
  EXPECT_EQ(size_of(*file), 10000);
  ASSERT_TRUE(file->grow(500).ok());
  EXPECT_EQ(size_of(*file), 10000);
  ASSERT_TRUE(file->truncate(100).ok());
  EXPECT_EQ(size_of(*file), 100);
  ASSERT_TRUE(file->preallocate(7000).ok());
  EXPECT_EQ(size_of(*file), 7000);
  std::vector<std::byte> buffer(6900);
  ASSERT_EQ(*file->read(100, buffer), 6900);
  EXPECT_EQ(std::count(buffer.begin(), buffer.end(), std::byte{0}), 6900);
  EXPECT_TRUE(file->close().ok());
}

TEST_P(BackendConformance, NamesAndIdentities) {
  const std::string path = directory_.file("a");
  EXPECT_EQ(backend_->open(path, {}).status().code(), Code::no_such_file);
  EXPECT_EQ(backend_->attributes(path).status().code(), Code::no_such_file);
  EXPECT_EQ(backend_->remove(path).code(), Code::no_such_file);
  auto file = opened(path);
  EXPECT_EQ(backend_->open(path, {.create = true, .exclusive = true}).status().code(), Code::file_exists);
  EXPECT_EQ(backend_->attributes(path)->identity, file->attributes()->identity);
  auto other = opened(directory_.file("b"));
  EXPECT_NE(other->attributes()->identity, file->attributes()->identity);
  EXPECT_EQ(file->attributes()->links, 1);
  EXPECT_TRUE(backend_->remove(path).ok());
  EXPECT_EQ(file->attributes()->links, 0);
  EXPECT_EQ(other->attributes()->links, 1);
  EXPECT_EQ(backend_->attributes(path).status().code(), Code::no_such_file);
  EXPECT_TRUE(file->close().ok());
  EXPECT_TRUE(other->close().ok());
}

TEST_P(BackendConformance, LocksAreTakenAndGivenBack) {
  auto file = opened(directory_.file("a"));
  EXPECT_TRUE(file->lock(0, 100, true).ok());
  EXPECT_TRUE(file->unlock(0, 100).ok());
  EXPECT_TRUE(file->lock(50, 10, false).ok());
  EXPECT_TRUE(file->unlock(50, 10).ok());
  EXPECT_TRUE(file->sync().ok());
  EXPECT_TRUE(file->close().ok());
}

INSTANTIATE_TEST_SUITE_P(
    All, BackendConformance,
    testing::Values(BackendKind{"posix", true,
                                [] { return std::shared_ptr<Backend>(make_posix_backend(base::DirectIo::off)); }},
                    BackendKind{"posix_direct", true,
                                [] { return std::shared_ptr<Backend>(make_posix_backend(base::DirectIo::on)); }},
                    BackendKind{"null", false, [] { return std::shared_ptr<Backend>(make_null_backend()); }},
                    BackendKind{"fault_over_posix", true,
                                [] {
                                  std::shared_ptr<Backend> posix = make_posix_backend(base::DirectIo::off);
                                  return std::shared_ptr<Backend>(
                                      make_fault_backend(posix, std::make_shared<FaultPlan>()));
                                }}),
    [](const testing::TestParamInfo<BackendKind>& kind) { return std::string(kind.param.name); });

TEST(FaultBackend, FailsTheCallsThatWereNamed) {
  auto plan = std::make_shared<FaultPlan>();
  auto backend = make_fault_backend(std::shared_ptr<Backend>(make_null_backend()), plan);
  auto file = std::move(*backend->open("some/data.h5", {.create = true}));
  plan->add({.operation = Operation::write, .errno_value = ENOSPC, .skip = 1, .count = 2, .path_substring = ".h5"});
  std::byte byte{};
  const iovec piece{&byte, 1};
  EXPECT_TRUE(file->write(0, {&piece, 1}).ok());
  const Status failed = file->write(10, {&piece, 1});
  EXPECT_EQ(failed.code(), Code::no_space);
  EXPECT_EQ(failed.offset(), 10);
  EXPECT_NE(failed.what().find("some/data.h5"), std::string::npos);
  EXPECT_EQ(file->write(0, {&piece, 1}).code(), Code::no_space);
  EXPECT_TRUE(file->write(0, {&piece, 1}).ok());
  EXPECT_EQ(plan->injected(), 2);
  plan->add({.operation = Operation::sync, .errno_value = EIO, .count = -1});
  EXPECT_EQ(file->sync().code(), Code::io);
  EXPECT_EQ(file->sync().code(), Code::io);
  plan->clear();
  EXPECT_TRUE(file->sync().ok());
  EXPECT_TRUE(file->close().ok());
}

TEST(FaultBackend, ATornWriteLeavesHalf) {
  auto plan = std::make_shared<FaultPlan>();
  auto backend = make_fault_backend(std::shared_ptr<Backend>(make_null_backend()), plan);
  auto file = std::move(*backend->open("f", {.create = true}));
  plan->add({.operation = Operation::write, .errno_value = EIO, .torn = true});
  std::byte bytes[100] = {};
  const iovec piece{bytes, sizeof bytes};
  EXPECT_EQ(file->write(0, {&piece, 1}).code(), Code::io);
  EXPECT_EQ(file->attributes()->bytes, 50);
  EXPECT_TRUE(file->close().ok());
}

}  // namespace
}  // namespace spillway::storage
