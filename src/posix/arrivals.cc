#include "posix/arrivals.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/inside.h"

namespace spillway::posix {
namespace {

constexpr std::int64_t kWaitNs = 5'000'000;
constexpr int kTurnsBetweenLivenessChecks = 200;

// Set once; release by watch(), acquire by everyone who goes on to use the tables.
std::atomic<journal::Node*> g_node{nullptr};

class KeepErrno {
 public:
  ~KeepErrno() { errno = saved_; }

 private:
  int saved_ = errno;
};

std::optional<std::uint32_t> slot_of(journal::Node& node, const struct stat& st) {
  if (!S_ISREG(st.st_mode)) return std::nullopt;
  return node.find_file({static_cast<std::uint64_t>(st.st_dev), static_cast<std::uint64_t>(st.st_ino)});
}

bool arrived(journal::Node& node, std::uint32_t slot) {
  const journal::FileSlot& file = node.file(slot);
  return file.pending_records.load(std::memory_order_acquire) == 0 ||
         file.stuck_owners.load(std::memory_order_relaxed) > 0;
}

void await_slot(journal::Node& node, std::uint32_t slot) {
  for (int turn = 1;; ++turn) {
    const std::uint32_t seen = node.retired_event();
    if (arrived(node, slot)) return;
    if (turn % kTurnsBetweenLivenessChecks == 0 && node.has_dead_owner(slot)) return;
    node.wait_retired(seen, kWaitNs);
  }
}

// The node, when there is something to be done for the program's call.
journal::Node* node_if_pending() {
  return !base::Inside::here() && anything_pending() ? g_node.load(std::memory_order_acquire) : nullptr;
}

// An absolute name, as far as that can be told from the arguments.
std::string absolute(int directory, const char* path) {
  if (path[0] == '/') return path;
  char base[PATH_MAX];
  if (directory == AT_FDCWD) {
    return getcwd(base, sizeof base) != nullptr ? fmt::format("{}/{}", base, path) : path;
  }
  const ssize_t length = readlink(fmt::format("/proc/self/fd/{}", directory).c_str(), base, sizeof base - 1);
  return length > 0 ? fmt::format("{}/{}", std::string_view(base, static_cast<std::size_t>(length)), path) : path;
}

}  // namespace

void watch(journal::Node& node) { g_node.store(&node, std::memory_order_release); }

bool anything_pending() {
  const journal::Node* node = g_node.load(std::memory_order_acquire);
  return node != nullptr && node->header().pending_files.load(std::memory_order_acquire) > 0;
}

void await_path(int directory, const char* path) {
  journal::Node* node = node_if_pending();
  if (node == nullptr || path == nullptr) return;
  const KeepErrno keep;
  struct stat st {};
  if (fstatat(directory, path, &st, 0) != 0) return;
  if (const auto slot = slot_of(*node, st)) await_slot(*node, *slot);
}

void await_descriptor(int descriptor) {
  journal::Node* node = node_if_pending();
  if (node == nullptr) return;
  const KeepErrno keep;
  struct stat st {};
  if (fstat(descriptor, &st) != 0) return;
  if (const auto slot = slot_of(*node, st)) await_slot(*node, *slot);
}

void await_all() {
  journal::Node* node = node_if_pending();
  if (node == nullptr) return;
  const KeepErrno keep;
  for (std::uint32_t slot = 0; slot < journal::kFilesMax; ++slot) {
    if (node->file_in_use(slot)) await_slot(*node, slot);
  }
}

RenameNote::RenameNote(int old_directory, const char* old_path, int new_directory, const char* new_path) {
  journal::Node* node = node_if_pending();
  if (node == nullptr || old_path == nullptr || new_path == nullptr) return;
  const KeepErrno keep;
  struct stat st {};
  if (fstatat(old_directory, old_path, &st, 0) != 0) return;
  if (const auto slot = slot_of(*node, st)) {
    slot_ = *slot;
    new_path_ = absolute(new_directory, new_path);
  }
}

void RenameNote::done() const {
  if (slot_ == journal::kNone) return;
  const KeepErrno keep;
  g_node.load(std::memory_order_acquire)->set_file_path(slot_, new_path_);
}

}  // namespace spillway::posix
