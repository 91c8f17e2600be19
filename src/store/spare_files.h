#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

// Files that have served, kept to serve again under another name. A file system may not give out the inode of a removed
// file for minutes, and look at all of them for each file that is made (ext4 without a journal does): a file made and
// removed with every turn would slow all others down. Thread-safe.
class SpareFiles {
 public:
  // In `directory`, which is made when it is needed; nothing in it outlives the process. `file_system` must outlive
  // this.
  SpareFiles(FileSystem& file_system, std::string directory)
      : file_system_(file_system), directory_(std::move(directory)) {}
  ~SpareFiles();
  SpareFiles(const SpareFiles&) = delete;
  SpareFiles& operator=(const SpareFiles&) = delete;

  // An empty file of this name, which must be free. Failures: those of FileSystem::CreateFile.
  Result<std::unique_ptr<WritableFile>> Take(const std::string& path);
  // Takes away the file of this name; what it held is gone. `file` may be null: not open.
  Result<void> Give(const std::string& path, std::unique_ptr<WritableFile> file);
  // Removes what another process has left: empty files that have names of this. Everything else there stays.
  void RemoveLeftovers();

 private:
  struct Spare {
    std::string path;
    std::unique_ptr<WritableFile> file;
  };
  // False: the file cannot be kept.
  bool Keep(const std::string& path, std::unique_ptr<WritableFile> file);

  FileSystem& file_system_;
  const std::string directory_;
  std::mutex mutex_;
  std::vector<Spare> spares_;    // guarded by mutex_
  std::uint64_t next_name_ = 0;  // guarded by mutex_
  bool directory_made_ = false;  // guarded by mutex_
};

}  // namespace reprise
