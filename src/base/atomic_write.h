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
  kUnsynced,  // survives the process, but a power loss may leave the file empty: only for what can be made again
};

// A file that takes the place of another one all at once: a temporary file beside it (".NAME.<random>.tmp", mode 0600)
// is written, synced and renamed over it. A crash may leave a temporary file behind. Movable, not thread-safe.
class AtomicFile {
 public:
  // Creates the temporary file. `file_system` must outlive the object.
  static Result<AtomicFile> Create(FileSystem& file_system, std::string path);
  AtomicFile(AtomicFile&&) noexcept = default;
  AtomicFile& operator=(AtomicFile&&) noexcept = default;
  ~AtomicFile();  // removes what was not committed

  // Makes the path a file with `content`. When this returns ok the content has reached the disk; the name is durable
  // only after SyncDirectory on the parent. After a failure the path is what it was. Once.
  Result<void> Commit(std::string_view content, Durability durability = Durability::kSynced);
  // The same, synced, for a file that goes on growing: it stays open.
  Result<std::unique_ptr<WritableFile>> CommitOpen(std::string_view content);

 private:
  AtomicFile(FileSystem& file_system, std::string path, std::string temporary, std::unique_ptr<WritableFile> file)
      : file_system_(&file_system), path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}

  FileSystem* file_system_;
  std::string path_, temporary_;
  std::unique_ptr<WritableFile> file_;  // null: committed, or moved from
};

// A name for a temporary file beside `path`, as AtomicFile has it.
std::string TemporaryPath(const std::string& path);
// Whether a directory entry is called like a temporary file of this.
bool IsTemporaryName(std::string_view name);

// Creates and commits.
Result<void> ReplaceFile(FileSystem& file_system, const std::string& path, std::string_view content,
                         Durability durability = Durability::kSynced);

// Creates a directory and what is missing above it, durably: when this returns ok, the whole path survives a power
// loss. False: it was there.
Result<bool> CreateDirectories(FileSystem& file_system, const std::string& path);

// Held by who reads a file, changes it and writes it anew, so that of several who do so at once, in this process or in
// another, none loses what another has written (flock(2) on the file's folder: one that its process has left behind
// blocks nobody, and no file more lies about). Until the object ends.
class FolderLock {
 public:
  // Waits for whoever has it; kUnavailable when `limit` is over (nullopt: there is none). A folder that the kernel does
  // not know is one in memory, of this process alone: then nothing is held.
  static Result<FolderLock> Take(const std::string& folder, std::optional<std::chrono::milliseconds> limit);

 private:
  explicit FolderLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace reprise
