#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "reprise/result.h"
#include "reprise/workspace_change.h"
#include "tools/files/workspace.h"

namespace reprise {

// A version with its content, or a link's target; empty where it is not kept.
struct ReadVersion {
  FileVersion version;
  std::string content{};
};

// Since 1970.
inline std::int64_t Nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Bytes of a path; what lies deeper is out of reach.
inline constexpr std::size_t kLongestPath = 4'000;

// Whether a directory entry is never looked at: git's own, and what Reprise makes while it writes.
bool IsLeftAlone(std::string_view name);
// kForbidden unless it is a path as WorkspaceChange has it, without anything that is left alone.
Result<void> CheckWorkspacePath(std::string_view path);
// The same, but for git's own.
Result<void> CheckPathOrGits(std::string_view path);

// Single paths of the workspace, reached without following any link. Thread-safe. Failures: kForbidden (out of reach,
// protected, behind a link), kInvalidArgument (neither file, link nor directory), kIo, kStorageFull, kConflict.
class WorkspaceFiles {
 public:
  // `workspace` must outlive it. Files of more bytes are not kept.
  WorkspaceFiles(const Workspace& workspace, std::uint64_t file_bytes)
      : workspace_(workspace), file_bytes_(file_bytes) {}

  // nullopt: nothing is there, also as a link stands where a directory would have to be. Also of git's own.
  Result<std::optional<ReadVersion>> Read(const std::string& path) const;

  // What is put into its place is first written down in `staging`, a folder of the workspace's root that is left alone:
  // what takes room is done before anything is touched. `sync`: it survives a power loss, but for its name.
  Result<void> Stage(const std::string& staging, const std::string& path, const FileVersion& version,
                     std::string_view content, bool sync) const;
  // Makes what stands there, a file, a link or nothing, what is staged for it; all or nothing. Directories above are
  // made.
  Result<void> Place(const std::string& staging, const std::string& path) const;
  // With all that is still in it.
  void RemoveStaging(const std::string& staging) const;
  static std::string NewStaging();

  // Ok also if there is one.
  Result<void> MakeDirectory(const std::string& path, std::uint32_t mode) const;
  // Of a directory.
  Result<void> SetMode(const std::string& path, std::uint32_t mode) const;
  // Ok also if nothing is there, or a directory that is not empty.
  Result<void> Remove(const std::string& path, bool directory) const;
  // Names in a directory; empty if there is none.
  std::vector<std::string> List(const std::string& path) const;

 private:
  struct Target {
    UniqueFd parent;
    std::string name;
  };
  Result<UniqueFd> OpenRoot() const;
  Result<UniqueFd> OpenStaging(const std::string& staging, bool make) const;
  // nullopt: the directory above is not there.
  Result<std::optional<Target>> Open(const std::string& path, bool make_parents) const;
  Result<std::optional<Target>> OpenChecked(const std::string& path, bool make_parents) const;

  const Workspace& workspace_;
  const std::uint64_t file_bytes_;
};

// Names in an opened directory; none if it cannot be read.
std::vector<std::string> NamesIn(int directory);
// Of an entry that was opened: what it holds, up to so many bytes. Not kept if it is longer, or cannot be read.
ReadVersion ReadEntry(int directory, const std::string& name, const struct stat& status, std::uint64_t file_bytes);

}  // namespace reprise
