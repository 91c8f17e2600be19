#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "reprise/file_system.h"

namespace reprise {

// A disk with limited room: a write that does not fit is cut off and fails with kStorageFull. Names take room too. No
// room is given back until MakeRoom. Thread-safe.
class FullDisk final : public FileSystem {
 public:
  static constexpr std::size_t kNameBytes = 64;  // taken by a new name

  FullDisk(FileSystem& base, std::size_t room) : base_(base), room_(room) {}

  void MakeRoom();
  bool was_full() const;

  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override;
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> SyncDirectory(const std::string& path) override;
  SyncReach sync_reach(const std::string& folder) override { return base_.sync_reach(folder); }
  Result<bool> CreateDirectory(const std::string& path) override;
  Result<void> RemoveFile(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override;

 private:
  class File;
  // Takes as many of these bytes as fit. Returns how many.
  std::size_t Take(std::size_t bytes);

  FileSystem& base_;
  mutable std::mutex mutex_;
  std::size_t room_;       // guarded by mutex_
  bool was_full_ = false;  // guarded by mutex_
};

}  // namespace reprise
