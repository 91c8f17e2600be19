#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "reprise/result.h"
#include "reprise/workspace_change.h"
#include "tools/files/workspace.h"

namespace reprise {

// A version with its content, or a link's target; empty where it is not kept.
struct ReadVersion {
  FileVersion version;
  std::string content{};
};

// Whether a directory entry is never looked at: git's own, and what Reprise makes while it writes.
bool IsLeftAlone(std::string_view name);
// kForbidden unless it is a path as WorkspaceChange has it, without anything that is left alone.
Result<void> CheckWorkspacePath(std::string_view path);

// Single paths of the workspace, reached without following any link. Thread-safe. Failures: kForbidden (out of reach,
// protected, behind a link), kInvalidArgument (neither file, link nor directory), kIo, kStorageFull, kConflict.
class WorkspaceFiles {
 public:
  // `workspace` must outlive it. Files of more bytes are not kept.
  WorkspaceFiles(const Workspace& workspace, std::uint64_t file_bytes) : workspace_(workspace), file_bytes_(file_bytes) {}

  // nullopt: nothing is there.
  Result<std::optional<ReadVersion>> Read(const std::string& path) const;
  // Makes what stands there, a file, a link or nothing, this file or link; all or nothing. Directories above are made.
  // `sync`: it survives a power loss, but for its name.
  Result<void> Write(const std::string& path, const FileVersion& version, std::string_view content, bool sync) const;
  Result<void> MakeDirectory(const std::string& path, std::uint32_t mode) const;
  // Ok also if nothing is there, or a directory that is not empty.
  Result<void> Remove(const std::string& path, bool directory) const;
  // What a Write that was killed has left.
  void RemoveLeftover(const std::string& path) const;
  // Names in a directory; empty if there is none.
  std::vector<std::string> List(const std::string& path) const;

 private:
  struct Target {
    UniqueFd parent;
    std::string name;
  };
  Result<UniqueFd> OpenRoot() const;
  // nullopt: the directory above is not there.
  Result<std::optional<Target>> Open(const std::string& path, bool make_parents) const;

  const Workspace& workspace_;
  const std::uint64_t file_bytes_;
};

// Of an entry that was opened: what it holds, up to so many bytes. Not kept if it is longer, or cannot be read.
ReadVersion ReadEntry(int directory, const std::string& name, const struct stat& status, std::uint64_t file_bytes);

}  // namespace reprise
