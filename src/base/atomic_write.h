#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/system.h"
#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

// The directory part of a path: "." for a bare name, "/" for a name in the root.
std::string ParentDirectory(const std::string& path);

enum class Durability {
  kSynced,
  kUnsynced,  // survives the process, but a power loss may leave the file empty: only for data that can be rebuilt
  // Renamed and then synced, which makes the name durable too where syncs reach it (SyncReach). A power loss between
  // the two may leave any part of the file, so something else must tell that it is not finished. Only for new files.
  kNamedThenSynced,
};

// Replaces a file atomically: writes and syncs a temporary file beside it (".NAME.<random>.tmp", mode 0600), then
// renames it. A crash may leave a temporary file behind. Movable, not thread-safe.
class AtomicFile {
 public:
  // Creates the temporary file. `file_system` must outlive the object.
  static Result<AtomicFile> Create(FileSystem& file_system, std::string path);
  AtomicFile(AtomicFile&&) noexcept = default;
  AtomicFile& operator=(AtomicFile&&) noexcept = default;
  ~AtomicFile();  // removes an uncommitted temporary file

  // Puts a file with `content` at the path. On success the content is on the disk, but the name is durable only after
  // SyncDirectory on the parent. A failure leaves the path unchanged. Call it once.
  Result<void> Commit(std::string_view content, Durability durability = Durability::kSynced);
  // The same, synced, but keeps the file open for further writes.
  Result<std::unique_ptr<WritableFile>> CommitOpen(std::string_view content);

 private:
  Result<std::unique_ptr<WritableFile>> TakeName();
  AtomicFile(FileSystem& file_system, std::string path, std::string temporary, std::unique_ptr<WritableFile> file)
      : file_system_(&file_system), path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}

  FileSystem* file_system_;
  std::string path_, temporary_;
  std::unique_ptr<WritableFile> file_;  // null: committed, or moved from
};

// A name for a temporary file beside `path`, in AtomicFile's form.
std::string TemporaryPath(const std::string& path);
// Whether a directory entry has such a name.
bool IsTemporaryName(std::string_view name);

// Create and Commit in one call.
Result<void> ReplaceFile(FileSystem& file_system, const std::string& path, std::string_view content,
                         Durability durability = Durability::kSynced);

// Creates a directory and its missing parents durably: on success the whole path survives a power loss. False if it
// existed.
Result<bool> CreateDirectories(FileSystem& file_system, const std::string& path);

// Held while a file is read, changed and rewritten, so that concurrent writers in this or other processes lose no
// update. An flock(2) on the file's folder: a dead process leaves no lock behind, and no lock file is needed.
class FolderLock {
 public:
  // Waits for the holder; kUnavailable after `limit` (nullopt: no limit). A folder unknown to the kernel is in this
  // process's memory and needs no lock.
  static Result<FolderLock> Take(const std::string& folder, std::optional<std::chrono::milliseconds> limit);

 private:
  explicit FolderLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace reprise
