#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// A file being written. Not thread-safe. The destructor closes it without a sync.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Result<void> Append(std::string_view data) = 0;
  // Returns after the content has reached the disk. After a failure give the file up: a second Sync on the same
  // descriptor may succeed without having written anything.
  virtual Result<void> Sync() = 0;
  virtual Result<void> Close() = 0;
};

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  bool is_link = false;
};

// Reports the directories that come into a directory or leave it. Not thread-safe.
class DirectoryWatch {
 public:
  struct Change {
    std::string name;
    bool is_there = false;
  };
  virtual ~DirectoryWatch() = default;
  // The changes since the last call, in their order. nullopt: some are unknown, and so are all that follow.
  virtual std::optional<std::vector<Change>> Take() = 0;
};

// What else a sync makes durable.
enum class SyncReach {
  kItself,    // nothing: all that POSIX promises
  kNewNames,  // of a file whose name is new: the names in its directory, and so on upwards as long as that one is new
  // All changes of names up to the last one of the file itself. Those not yet durable are lost from the newest on.
  kAllNames,
};

// The store's view of the disk; tests inject failures here. Thread-safe. Failures: kNotFound, kConflict (exists
// already), kStorageFull (ENOSPC, EDQUOT), kIo; below a confined folder also kCorruption (reason "integrity_missing": a
// symbolic link or a special file stands in place of a file or folder); the path and errno are in `detail`.
//
//   auto file = disk.CreateFile("chats/new");
//   if (!file) return Complain(file.error().message);
//   auto done = (*file)->Append("text").and_then([&] { return (*file)->Sync(); });
//   if (done) done = disk.Rename("chats/new", "chats/current");
//   if (done) done = disk.SyncDirectory("chats");
//   if (!done) return Complain(done.error().message);
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // From now on no call follows a symbolic link below `folder` (which may itself be one), because another user may have
  // put it there. Applies to paths that begin with `folder` exactly as written here.
  virtual void Confine(const std::string& folder) { static_cast<void>(folder); }
  // Declares that this folder exists, as long as the result lives. If it has been removed or moved, a call that finds
  // nothing at or below it fails with kUnavailable (reason "data_folder_gone") instead of kNotFound, until it is back.
  // If another folder is in its place, so does every call that would change something there.
  [[nodiscard]] virtual std::shared_ptr<const void> Expect(const std::string& folder) {
    static_cast<void>(folder);
    return nullptr;
  }

  // kTooLarge beyond `max_bytes`.
  virtual Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) = 0;
  // Creates a file that must not exist, mode 0600 whatever the umask.
  virtual Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) = 0;
  // Replaces `to` if it exists.
  virtual Result<void> Rename(const std::string& from, const std::string& to) = 0;
  // Makes the names in a directory durable.
  virtual Result<void> SyncDirectory(const std::string& path) = 0;
  // Which names each sync below this folder makes durable, besides what it is asked for.
  virtual SyncReach sync_reach(const std::string& folder) {
    static_cast<void>(folder);
    return SyncReach::kItself;
  }
  // Makes everything below a directory durable, contents and names: faster than each file by itself if there are many.
  // Only if syncs_trees().
  virtual bool syncs_trees() const { return false; }
  virtual Result<void> SyncTree(const std::string& path) {
    static_cast<void>(path);
    return Fail(ErrorCode::kUnavailable, "this disk syncs no folders");
  }
  // Mode 0700 whatever the umask. The parent must exist. False: it existed already.
  virtual Result<bool> CreateDirectory(const std::string& path) = 0;
  virtual Result<void> RemoveFile(const std::string& path) = 0;
  // Without "." and "..", in no order.
  virtual Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) = 0;
  // Null where the disk cannot report all changes.
  virtual std::unique_ptr<DirectoryWatch> Watch(const std::string& path) {
    static_cast<void>(path);
    return nullptr;
  }
};

}  // namespace reprise
