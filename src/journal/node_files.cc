// The node's table of files.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "journal/node.h"
#include "journal/node_lock.h"

namespace spillway::journal {

std::uint32_t Node::bucket_of(const FileKey& key) const {
  return static_cast<std::uint32_t>((key.inode * 0x9e3779b97f4a7c15 + key.device * 0xc2b2ae3d27d4eb4f) >> 40) %
         kFileBuckets;
}

std::uint32_t Node::find_locked(const FileKey& key) const {
  for (std::uint32_t i = header().file_bucket[bucket_of(key)]; i != kNone; i = file(i).next_in_bucket) {
    if (file(i).device == key.device && file(i).inode == key.inode) return i;
  }
  return kNone;
}

FileSlot& Node::file(std::uint32_t slot) const {
  assert(slot < kFilesMax);
  return reinterpret_cast<FileSlot*>(mapping_.data() + kFilesOffset)[slot];
}

std::string Node::file_path(std::uint32_t slot) const {
  const char* path = reinterpret_cast<const char*>(mapping_.data() + kPathsOffset + slot * kPathBytesMax);
  return std::string(path, strnlen(path, kPathBytesMax));
}

Result<std::uint32_t> Node::acquire_file(const FileKey& key, const std::string& path) {
  Locked lock(header());
  std::uint32_t slot = find_locked(key);
  if (slot == kNone) {
    if (header().free_file != kNone) {
      slot = header().free_file;
      header().free_file = file(slot).next_in_bucket;
    } else if (header().files < kFilesMax) {
      slot = header().files;
      Status status = mapping_.populate(kFilesOffset + slot * sizeof(FileSlot), sizeof(FileSlot));
      if (status.ok()) status = mapping_.populate(kPathsOffset + slot * kPathBytesMax, kPathBytesMax);
      if (!status) return Status(Code::no_memory, status.what());
      ++header().files;
    } else {
      return Status(Code::no_memory, fmt::format("more than {} files open or pending on this node", kFilesMax));
    }
    FileSlot& fresh = file(slot);
    fresh.device = key.device;
    fresh.inode = key.inode;
    fresh.birth_ns = key.birth_ns;
    fresh.open_count = 0;
    fresh.next_sequence.store(1, std::memory_order_relaxed);
    fresh.pending_records.store(0, std::memory_order_relaxed);
    fresh.spans_nodes.store(0, std::memory_order_relaxed);
    fresh.stuck_owners.store(0, std::memory_order_relaxed);
    fresh.error.store({}, std::memory_order_relaxed);
    fresh.used = 1;
    std::uint32_t& bucket = header().file_bucket[bucket_of(key)];
    fresh.next_in_bucket = bucket;
    bucket = slot;
  }
  store_path(slot, path);  // the name of the latest open
  ++file(slot).open_count;
  return slot;
}

void Node::store_path(std::uint32_t slot, const std::string& path) {
  char* stored = reinterpret_cast<char*>(mapping_.data() + kPathsOffset + slot * kPathBytesMax);
  const std::size_t length = std::min(path.size(), kPathBytesMax - 1);
  std::memcpy(stored, path.data(), length);
  stored[length] = '\0';
}

void Node::set_file_path(std::uint32_t slot, const std::string& path) {
  Locked lock(header());
  store_path(slot, path);
}

bool Node::file_in_use(std::uint32_t slot) const {
  Locked lock(header());
  return slot < header().files && file(slot).used != 0;
}

std::optional<std::uint32_t> Node::find_file(const FileKey& key) {
  Locked lock(header());
  const std::uint32_t slot = find_locked(key);
  return slot == kNone ? std::nullopt : std::optional(slot);
}

void Node::add_file_user(std::uint32_t slot) {
  Locked lock(header());
  ++file(slot).open_count;
}

void Node::release_file(std::uint32_t slot) {
  Locked lock(header());
  FileSlot& entry = file(slot);
  assert(entry.open_count > 0);
  if (--entry.open_count > 0) return;
  std::uint32_t* link = &header().file_bucket[bucket_of({entry.device, entry.inode})];
  while (*link != slot) link = &file(*link).next_in_bucket;
  *link = entry.next_in_bucket;
  entry.used = 0;
  entry.next_in_bucket = header().free_file;
  header().free_file = slot;
}

}  // namespace spillway::journal
