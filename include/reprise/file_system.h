#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// A file being written. Not thread-safe. Destroying it closes it without promising anything.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Result<void> Append(std::string_view data) = 0;
  // Returns after the content has reached the disk. After a failure the file must be given up: a second Sync on the
  // same descriptor may succeed without having written anything.
  virtual Result<void> Sync() = 0;
  virtual Result<void> Close() = 0;
};

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
};

// The disk as the store sees it: the seam at which tests make it fail. Thread-safe. Failures: kNotFound, kConflict
// (there already), kStorageFull (ENOSPC, EDQUOT), kIo; below a confined folder also kCorruption (reason
// "integrity_missing": a symbolic link, or something else that is no file or folder, is in the place of one); the path
// and errno are in `detail`.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // From now on no call follows a symbolic link below `folder`, which may be one itself: who has put it there may not
  // be who runs this program. Only paths that begin with `folder` as it is written here are meant.
  virtual void Confine(const std::string& folder) { static_cast<void>(folder); }
  // From now on this folder is there: a call that finds nothing at it or below it, because somebody has removed or
  // moved the folder itself, fails with kUnavailable (reason "data_folder_gone") instead of kNotFound, until it is
  // back.
  virtual void Expect(const std::string& folder) { static_cast<void>(folder); }

  // kTooLarge beyond `max_bytes`.
  virtual Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) = 0;
  // Creates a file that must not exist, mode 0600 whatever the umask.
  virtual Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) = 0;
  // Replaces `to` if it exists.
  virtual Result<void> Rename(const std::string& from, const std::string& to) = 0;
  // Makes the names in a directory durable.
  virtual Result<void> SyncDirectory(const std::string& path) = 0;
  // Makes all durable that was written below a directory, contents and names: faster than file by file where there are
  // many. Only where the disk can.
  virtual bool syncs_trees() const { return false; }
  virtual Result<void> SyncTree(const std::string& path) {
    static_cast<void>(path);
    return Fail(ErrorCode::kUnavailable, "this disk syncs no folders");
  }
  // Mode 0700 whatever the umask. Parent must exist. False: it was there already.
  virtual Result<bool> CreateDirectory(const std::string& path) = 0;
  virtual Result<void> RemoveFile(const std::string& path) = 0;
  // Without "." and "..", in no order.
  virtual Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) = 0;
};

}  // namespace reprise
