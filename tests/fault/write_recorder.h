#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reprise/file_system.h"

namespace reprise {

// One call that changed the disk.
struct DiskWrite {
  enum class Kind { kCreate, kAppend, kSync, kRename, kSyncDirectory, kCreateDirectory, kRemove };
  Kind kind;
  std::string path{};    // kCreate, kRename (from), kSyncDirectory, kCreateDirectory, kRemove
  std::string to{};      // kRename
  std::string data{};    // kAppend
  std::size_t file = 0;  // kCreate, kAppend, kSync: number of the file, in order of creation
};

// Records the writes to the file system below, in order. Calls take turns. Thread-safe.
class WriteRecorder final : public FileSystem {
 public:
  explicit WriteRecorder(FileSystem& base) : base_(base) {}

  // The number of writes so far.
  std::size_t position() const;
  std::vector<DiskWrite> writes() const;

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

  FileSystem& base_;
  mutable std::mutex mutex_;
  std::vector<DiskWrite> writes_;  // guarded by mutex_
  std::size_t files_ = 0;          // guarded by mutex_
};

}  // namespace reprise
