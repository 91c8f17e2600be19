#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reprise/file_system.h"

namespace reprise {

// A disk in memory that knows which changes are durable: a file's bytes as of its last Sync, a directory's names as of
// its last SyncDirectory. Starts as an empty root directory. Paths are absolute. Thread-safe.
class MemoryFileSystem final : public FileSystem {
 public:
  // The unsynced changes that survive a power loss. A disk may do any of these.
  enum class Kept {
    kNothing,
    kNames,       // new names, but not their bytes
    kEverything,  // the process ended, the machine did not
  };

  // `reach`: what sync_reach says. The disk does not do so itself: fault/power_loss.h does.
  explicit MemoryFileSystem(SyncReach reach = SyncReach::kItself);

  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override;
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> SyncDirectory(const std::string& path) override;
  SyncReach sync_reach(const std::string&) override { return reach_; }
  Result<bool> CreateDirectory(const std::string& path) override;
  Result<void> RemoveFile(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override;

  // The disk after a power loss at this moment.
  std::unique_ptr<MemoryFileSystem> AfterPowerLoss(Kept kept) const;
  // Replaces a file's bytes unnoticed by its users.
  void Overwrite(const std::string& path, std::string content);
  // Every call that changed something, in order: "create /a", "append /a", "sync /a", "rename /a /b", "sync_directory
  // /", ...
  std::vector<std::string> operations() const;

 private:
  struct Node {
    bool is_directory = false;
    std::string content, synced_content;
    std::map<std::string, std::shared_ptr<Node>> entries, synced_entries;
  };
  class File;

  // REQUIRES, of these two: mutex_ is held.
  Result<std::shared_ptr<Node>> Find(const std::string& path) const;
  Result<std::shared_ptr<Node>> FindDirectory(const std::string& path) const;
  static std::shared_ptr<Node> Survivor(const Node& node, Kept kept);

  const SyncReach reach_;
  mutable std::mutex mutex_;
  std::shared_ptr<Node> root_;           // guarded by mutex_, as are all nodes
  std::vector<std::string> operations_;  // guarded by mutex_
};

}  // namespace reprise
