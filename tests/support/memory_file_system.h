#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reprise/file_system.h"

namespace reprise {

// A disk in memory that knows which data are durable: the bytes of a file since its last Sync, the names in a directory
// since its last SyncDirectory. Starts as an empty root directory. Paths are absolute. Thread-safe.
class MemoryFileSystem final : public FileSystem {
 public:
  // What a power loss leaves of unsynced data. A disk may do any of these.
  enum class Kept {
    kNothing,
    kNames,       // new names survive, the bytes behind them do not
    kEverything,  // the process died, the machine did not
  };

  MemoryFileSystem();

  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override;
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> SyncDirectory(const std::string& path) override;
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

  // With mutex_ held.
  Result<std::shared_ptr<Node>> Find(const std::string& path) const;
  Result<std::shared_ptr<Node>> FindDirectory(const std::string& path) const;
  static std::shared_ptr<Node> Survivor(const Node& node, Kept kept);

  mutable std::mutex mutex_;
  std::shared_ptr<Node> root_;           // guarded by mutex_, as are all nodes
  std::vector<std::string> operations_;  // guarded by mutex_
};

}  // namespace reprise
