#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "reprise/file_system.h"

namespace reprise {

// Makes another file system fail. Counts the calls that change something (create, append, sync, close, rename, sync of
// a directory, create directory, remove). Failing calls do not reach the file system below. Thread-safe once it is set
// up.
class FaultyFileSystem final : public FileSystem {
 public:
  struct Fault {
    std::size_t at = 0;  // number of the failing call, from 1; 0: none
    ErrorCode code = ErrorCode::kIo;
    bool from_then_on = false;
    bool short_write = false;  // a failing append writes the first half
    bool reads = false;        // also counts and fails reads of files and directories
  };

  explicit FaultyFileSystem(FileSystem& base) : FaultyFileSystem(base, Fault{}) {}
  FaultyFileSystem(FileSystem& base, Fault fault) : base_(base), fault_(fault) {}

  // Makes syncs report ok and do nothing.
  void IgnoreFileSyncs() { ignore_file_syncs_ = true; }
  void IgnoreDirectorySyncs() { ignore_directory_syncs_ = true; }

  std::size_t calls() const { return calls_; }
  bool fired() const { return fired_; }
  // How often a file was synced again after a failed Sync. The kernel would have reported ok.
  std::size_t repeated_syncs() const { return repeated_syncs_; }

  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override;
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> SyncDirectory(const std::string& path) override;
  SyncReach sync_reach(const std::string& folder) override { return base_.sync_reach(folder); }
  bool syncs_trees() const override { return base_.syncs_trees(); }
  Result<void> SyncTree(const std::string& path) override;
  Result<bool> CreateDirectory(const std::string& path) override;
  Result<void> RemoveFile(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override;

 private:
  class File;
  // Counts a call. Fails if this call is to fail.
  Result<void> Count(const std::string& path);
  Result<void> CountRead(const std::string& path) { return fault_.reads ? Count(path) : Result<void>(); }

  FileSystem& base_;
  const Fault fault_;
  bool ignore_file_syncs_ = false, ignore_directory_syncs_ = false;
  std::atomic<std::size_t> calls_ = 0, repeated_syncs_ = 0;
  std::atomic<bool> fired_ = false;
};

}  // namespace reprise
