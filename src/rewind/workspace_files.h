#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "reprise/result.h"
#include "reprise/workspace_change.h"
#include "reprise/workspace_reader.h"
#include "tools/files/ignore_rules.h"
#include "tools/files/workspace.h"
#include "tools/files/workspace_walk.h"

namespace reprise {

// Walks through the workspace for each query. It caches nothing, so nothing can be stale.
class LocalWorkspaceReader final : public WorkspaceReader {
 public:
  struct Limits {
    std::uint64_t file_bytes = 10ull << 20;  // to read of a file
    std::size_t entries = 300'000;           // to look at
    std::size_t candidates = 500;            // to check and open
    std::chrono::milliseconds time{1'000};
  };
  // `workspace` must outlive it.
  LocalWorkspaceReader(const Workspace& workspace, Limits limits)
      : workspace_(workspace), limits_(limits), ignored_(workspace) {}

  Result<Listing> Find(const Query& query) const override;
  Result<std::string> Read(std::string_view path) const override;

 private:
  const Workspace& workspace_;
  const Limits limits_;
  const IgnoreFiles ignored_;
};

// Tells whether a file or a link was written or replaced in between.
struct FileStamp {
  std::uint64_t inode = 0, size = 0;
  std::int64_t modified = 0;
  std::int64_t changed = 0;  // 0 if it has several names: taking one away counts as a change
  bool operator==(const FileStamp&) const = default;
};

// A version with its content or a link's target, which is empty if not kept.
struct ReadVersion {
  FileVersion version;
  std::string content{};
  FileStamp stamp{};  // from before the content was read; of WorkspaceFiles::Read only
};

// Nanoseconds since 1970.
inline std::int64_t Nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// kForbidden unless it is a valid path of a WorkspaceChange without any component that is left alone.
Result<void> CheckWorkspacePath(std::string_view path);
// The same, but allows git's own.
Result<void> CheckPathOrGits(std::string_view path);

// Reads and writes single paths of the workspace without following links. Thread-safe. Failures: kForbidden (out of
// reach, protected, behind a link), kInvalidArgument (neither file, link nor directory), kIo, kStorageFull, kConflict.
class WorkspaceFiles {
 public:
  // `workspace` must outlive it. Contents of more than `file_bytes` are not kept.
  WorkspaceFiles(const Workspace& workspace, std::uint64_t file_bytes)
      : workspace_(workspace), file_bytes_(file_bytes) {}

  // nullopt if nothing is there, or if a link takes the place of a directory above. Reads git's own files too.
  Result<std::optional<ReadVersion>> Read(const std::string& path) const;

  // Writes a version into `staging`, a folder in the workspace's root that is left alone, so that work that needs space
  // is done before anything else is touched. With `sync` the content survives a power loss, but not the name.
  Result<void> Stage(const std::string& staging, const std::string& path, const FileVersion& version,
                     std::string_view content, bool sync) const;
  // Moves the staged version to its path, over a file, a link or nothing; all or nothing. Creates the directories
  // above.
  Result<void> Place(const std::string& staging, const std::string& path) const;
  // Whether this file or link is still there as it was read; nullopt: nothing was there.
  bool IsAsRead(const std::string& path, const std::optional<FileStamp>& stamp) const;
  // Removes the folder and its content.
  void RemoveStaging(const std::string& staging) const;
  static std::string NewStaging();

  // Ok if it exists.
  Result<void> MakeDirectory(const std::string& path, std::uint32_t mode) const;
  // The path must be a directory. kKeep: beside the set-group and sticky bits that it has.
  enum class SpecialBits { kSet, kKeep };
  Result<void> SetMode(const std::string& path, std::uint32_t mode, SpecialBits bits) const;
  // Ok if nothing is there, or if the directory is not empty.
  Result<void> Remove(const std::string& path, bool directory) const;
  // Names in a directory; empty if the directory is missing.
  std::vector<std::string> List(const std::string& path) const;

 private:
  struct Target {
    UniqueFd parent;
    std::string name;
  };
  Result<UniqueFd> OpenStaging(const std::string& staging, bool make) const;
  // nullopt if the parent directory is missing.
  Result<std::optional<Target>> Open(const std::string& path, bool make_parents) const;
  Result<std::optional<Target>> OpenChecked(const std::string& path, bool make_parents) const;

  const Workspace& workspace_;
  const std::uint64_t file_bytes_;
};

// Names in an opened directory; empty if it cannot be read.
std::vector<std::string> NamesIn(int directory);
// Reads an entry of an opened directory. Its content is not kept if longer than `file_bytes` or unreadable.
ReadVersion ReadEntry(int directory, const std::string& name, const struct stat& status, std::uint64_t file_bytes);

}  // namespace reprise
