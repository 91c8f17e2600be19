#include "support/memory_file_system.h"

#include <stdexcept>

#include "base/atomic_write.h"

namespace reprise {
namespace {

tl::unexpected<Error> NotFound(const std::string& path) { return Fail(ErrorCode::kNotFound, "no such file", path); }
tl::unexpected<Error> Exists(const std::string& path) { return Fail(ErrorCode::kConflict, "exists already", path); }

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

class MemoryFileSystem::File final : public WritableFile {
 public:
  File(MemoryFileSystem& owner, std::shared_ptr<Node> node, std::string path)
      : owner_(owner), node_(std::move(node)), path_(std::move(path)) {}

  Result<void> Append(std::string_view data) override {
    const std::lock_guard lock(owner_.mutex_);
    node_->content.append(data);
    owner_.operations_.push_back("append " + path_);
    return {};
  }
  Result<void> Sync() override {
    const std::lock_guard lock(owner_.mutex_);
    node_->synced_content = node_->content;
    owner_.operations_.push_back("sync " + path_);
    return {};
  }
  Result<void> Close() override { return {}; }

 private:
  MemoryFileSystem& owner_;
  const std::shared_ptr<Node> node_;
  const std::string path_;
};

MemoryFileSystem::MemoryFileSystem(SyncReach reach) : reach_(reach), root_(std::make_shared<Node>()) {
  root_->is_directory = true;
}

Result<std::shared_ptr<MemoryFileSystem::Node>> MemoryFileSystem::Find(const std::string& path) const {
  if (path == "/") return root_;
  auto parent = FindDirectory(ParentDirectory(path));
  if (!parent) return NotFound(path);
  const auto found = (*parent)->entries.find(BaseName(path));
  if (found == (*parent)->entries.end()) return NotFound(path);
  return found->second;
}

Result<std::shared_ptr<MemoryFileSystem::Node>> MemoryFileSystem::FindDirectory(const std::string& path) const {
  auto node = Find(path);
  if (node && !(*node)->is_directory) return NotFound(path);
  return node;
}

Result<std::string> MemoryFileSystem::ReadFile(const std::string& path, std::uint64_t max_bytes) {
  const std::lock_guard lock(mutex_);
  const auto node = Find(path);
  if (!node) return Fail(node.error());
  if ((*node)->is_directory) return Fail(ErrorCode::kIo, "not a regular file", path);
  if ((*node)->content.size() > max_bytes) return Fail(ErrorCode::kTooLarge, "the file is too large", path);
  return (*node)->content;
}

Result<std::unique_ptr<WritableFile>> MemoryFileSystem::CreateFile(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto parent = FindDirectory(ParentDirectory(path));
  if (!parent) return Fail(parent.error());
  const auto [entry, is_new] = (*parent)->entries.try_emplace(BaseName(path), std::make_shared<Node>());
  if (!is_new) return Exists(path);
  operations_.push_back("create " + path);
  return std::make_unique<File>(*this, entry->second, path);
}

Result<void> MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  const auto node = Find(from);
  const auto target = FindDirectory(ParentDirectory(to));
  if (!node || !target) return NotFound(from);
  (*FindDirectory(ParentDirectory(from)))->entries.erase(BaseName(from));
  (*target)->entries.insert_or_assign(BaseName(to), *node);
  operations_.push_back("rename " + from + " " + to);
  return {};
}

Result<void> MemoryFileSystem::SyncDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto node = FindDirectory(path);
  if (!node) return Fail(node.error());
  (*node)->synced_entries = (*node)->entries;
  operations_.push_back("sync_directory " + path);
  return {};
}

Result<bool> MemoryFileSystem::CreateDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (const auto node = Find(path)) {
    if (!(*node)->is_directory) return Exists(path);
    return false;
  }
  const auto parent = FindDirectory(ParentDirectory(path));
  if (!parent) return Fail(parent.error());
  auto node = std::make_shared<Node>();
  node->is_directory = true;
  (*parent)->entries.emplace(BaseName(path), std::move(node));
  operations_.push_back("create_directory " + path);
  return true;
}

Result<void> MemoryFileSystem::RemoveFile(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto node = Find(path);
  if (!node) return Fail(node.error());
  if ((*node)->is_directory) return Fail(ErrorCode::kIo, "a directory", path);
  (*FindDirectory(ParentDirectory(path)))->entries.erase(BaseName(path));
  operations_.push_back("remove " + path);
  return {};
}

Result<std::vector<DirectoryEntry>> MemoryFileSystem::ListDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto node = FindDirectory(path);
  if (!node) return Fail(node.error());
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, child] : (*node)->entries) {
    entries.push_back({.name = name, .is_directory = child->is_directory});
  }
  return entries;
}

std::shared_ptr<MemoryFileSystem::Node> MemoryFileSystem::Survivor(const Node& node, Kept kept) {
  auto survivor = std::make_shared<Node>();
  survivor->is_directory = node.is_directory;
  survivor->content = kept == Kept::kEverything ? node.content : node.synced_content;
  survivor->synced_content = survivor->content;
  for (const auto& [name, child] : kept == Kept::kNothing ? node.synced_entries : node.entries) {
    survivor->entries.emplace(name, Survivor(*child, kept));
  }
  survivor->synced_entries = survivor->entries;
  return survivor;
}

std::unique_ptr<MemoryFileSystem> MemoryFileSystem::AfterPowerLoss(Kept kept) const {
  const std::lock_guard lock(mutex_);
  auto disk = std::make_unique<MemoryFileSystem>();
  disk->root_ = Survivor(*root_, kept);
  return disk;
}

void MemoryFileSystem::Overwrite(const std::string& path, std::string content) {
  const std::lock_guard lock(mutex_);
  const auto node = Find(path);
  if (!node) throw std::invalid_argument("no such file: " + path);
  (*node)->content = std::move(content);
  (*node)->synced_content = (*node)->content;
}

std::vector<std::string> MemoryFileSystem::operations() const {
  const std::lock_guard lock(mutex_);
  return operations_;
}

}  // namespace reprise
