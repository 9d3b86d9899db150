#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "journal/journal.h"
#include "journal/pending.h"

// For tests only: the journals of some processes of a node.
namespace spillway::journal {

using extent::Extent;
using extent::ExtentList;
using extent::RunCursor;

inline constexpr std::int64_t kSegment = 256 * 1024;

inline ExtentList list(std::vector<Extent> extents) { return ExtentList::from_unsorted(std::move(extents)); }

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    std::string name = "/dev/shm/spillway-test-XXXXXX";
    if (access("/dev/shm", W_OK) != 0) name = std::filesystem::temp_directory_path() / "spillway-test-XXXXXX";
    shm_dir_ = mkdtemp(name.data());
    Result<std::unique_ptr<Node>> node = Node::attach(shm_dir_, "job");
    EXPECT_TRUE(node.ok()) << node.status().to_string();
    node_ = std::move(node).value();
  }
  ~JournalTest() override {
    journals_.clear();
    node_.reset();
    std::filesystem::remove_all(shm_dir_);
  }

  Journal& add_journal(std::int64_t limit, std::int64_t capacity = 16 * kSegment) {
    Result<std::unique_ptr<Journal>> journal = Journal::create(
        *node_, {.segment_payload_bytes = kSegment, .capacity_bytes = capacity, .scratch_bytes = kSegment, .rank = 0});
    EXPECT_TRUE(journal.ok()) << journal.status().to_string();
    journals_.push_back(std::move(journal).value());
    journals_.back()->set_limit(limit);
    return *journals_.back();
  }
  std::uint32_t add_file(std::uint64_t inode) {
    Result<std::uint32_t> slot = node_->acquire_file({1, inode}, "/some/file");
    EXPECT_TRUE(slot.ok());
    return *slot;
  }
  // Appends all of `runs`, filled with `fill`; returns the records, not yet committed.
  static std::vector<RecordId> append(Journal& journal, std::uint32_t file, const ExtentList& runs, std::byte fill,
                                      const CommitRule& rule = {}) {
    std::vector<RecordId> ids;
    RunCursor cursor{&runs, 0, 0};
    while (!cursor.at_end()) {
      Result<Journal::Appended> appended = journal.append(cursor, {file, rule, INT64_MAX});
      EXPECT_TRUE(appended.ok()) << appended.status().to_string();
      if (!appended.ok()) break;
      std::memset(appended->view.payload, static_cast<int>(fill), appended->view.header->payload_bytes);
      ids.push_back(appended->id);
    }
    return ids;
  }
  static std::vector<RecordId> write(Journal& journal, std::uint32_t file, const ExtentList& runs, std::byte fill) {
    const std::vector<RecordId> ids = append(journal, file, runs, fill);
    for (const RecordId& id : ids) journal.commit(id);
    return ids;
  }
  // What a reader sees of `range`, '.' where nothing is pending.
  std::string seen(Journal& own, std::uint32_t file, const Extent& range) {
    Pending pending(*node_, own);
    std::string text(static_cast<std::size_t>(range.length), '.');
    pending.read(file, list({range}), [&](std::int64_t offset, std::span<const std::byte> bytes) {
      std::memcpy(text.data() + (offset - range.offset), bytes.data(), bytes.size());
    });
    return text;
  }

  std::string shm_dir_;
  std::unique_ptr<Node> node_;
  std::vector<std::unique_ptr<Journal>> journals_;
};

}  // namespace spillway::journal
