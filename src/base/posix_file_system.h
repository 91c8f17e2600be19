#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "reprise/file_system.h"

namespace reprise {

// The real disk. Thread-safe. Every descriptor is close-on-exec; it reads only regular files, so that a FIFO or a
// device in a data folder cannot block the reader.
class PosixFileSystem final : public FileSystem {
 public:
  void Confine(const std::string& folder) override;
  std::shared_ptr<const void> Expect(const std::string& folder) override;
  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override;
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> SyncDirectory(const std::string& path) override;
  // kAllNames on XFS and on ext4 with its journal, where a sync writes the one log of all changes of names up to
  // itself; kNewNames on ext4 without one (ext4_sync_parent in Linux).
  SyncReach sync_reach(const std::string& folder) override;
  bool syncs_trees() const override { return true; }
  Result<void> SyncTree(const std::string& path) override;
  Result<bool> CreateDirectory(const std::string& path) override;
  Result<void> RemoveFile(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override;
  std::unique_ptr<DirectoryWatch> Watch(const std::string& path) override;

 private:
  // The length of the outermost confined folder that the path lies below; 0 if there is none.
  std::size_t ConfinedAt(const std::string& path) const;
  // data_folder_gone if an expected folder of this path is not there or another one is in its place. Every call that
  // changes something below asks first.
  Result<void> CheckExpected(std::string_view call, const std::string& path) const;
  // The error of a call that opens or names a file. `confined` comes from ConfinedAt.
  tl::unexpected<Error> Failed(std::string_view call, const std::string& path, std::size_t confined, int error) const;

  struct Expected;
  mutable Mutex mutex_;
  std::vector<std::string> confined_ GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<const Expected>> expected_ GUARDED_BY(mutex_);
};

// Whether inotify reports all changes in the file system of this descriptor, because no other kernel can write to it.
bool InotifyTellsAll(int fd);

// The real disk, for code that is not handed a FileSystem.
FileSystem& Disk();

}  // namespace reprise
