#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "reprise/result.h"

namespace reprise {

// The one directory file tools work in. Whatever path a model gives, nothing outside is reached: not by "..", absolute
// paths, symbolic links or /proc, and not while another process swaps directories for links. Protected paths (the
// server's own files) are out of reach too, even inside. Thread-safe; changes of files made through one Workspace
// happen one at a time.
//
// Paths are relative to the workspace; an absolute path that names something inside it is understood too. Reading
// follows symbolic links that stay inside, changing follows none.
//
// Failures, with messages for the model: kInvalidArgument (not a path, not a regular file, a directory), kForbidden
// (leads outside, protected, a link where none may be), kNotFound, kTooLarge, kStorageFull, kIo.
class Workspace {
 public:
  Workspace(const std::string& directory, const std::vector<std::string>& protected_paths);

  // Absolute, without symbolic links as far as it exists.
  const std::string& directory() const { return directory_; }
  const std::vector<std::string>& protected_paths() const { return protected_paths_; }

  // A regular file to read; never waits (for a pipe's other end, say).
  Result<UniqueFd> OpenFile(std::string_view path) const;
  Result<UniqueFd> OpenDirectory(std::string_view path) const;
  // Either of both.
  Result<UniqueFd> OpenAny(std::string_view path) const;

  // A regular file or directory named `name` (one component) in a directory that was opened here. Follows no link.
  Result<UniqueFd> OpenEntry(int directory, const std::string& name) const;

  // kTooLarge beyond `max_bytes`.
  Result<std::string> ReadFile(std::string_view path, std::size_t max_bytes) const;

  // Replaces the content or creates the file and the directories above it; all or nothing, and an existing file keeps
  // its permissions. True: it is new.
  Result<bool> WriteFile(std::string_view path, std::string_view content);
  // Replaces the content by what `change` makes of it, if it makes anything.
  Result<void> ChangeFile(std::string_view path, std::size_t max_bytes,
                          const std::function<Result<std::string>(std::string)>& change);
  // Removes a file or a symbolic link (not what it points to); no directories.
  Result<void> DeleteFile(std::string_view path);

  // Whether the open file or directory, or the entry `name` in it, is protected.
  bool IsProtected(int fd, std::string_view name = {}) const;

 private:
  struct Target {  // an entry that may not exist, in a directory that does
    UniqueFd parent;
    std::string name;
  };

  Result<UniqueFd> OpenRoot() const;
  Result<UniqueFd> Open(std::string_view path, int flags) const;
  Result<std::string> Relative(std::string_view path) const;
  Result<Target> OpenParent(std::string_view path, bool create) const;
  Result<bool> Replace(std::string_view path, std::string_view content, bool create);

  const std::string directory_;
  const std::string directory_as_given_;
  const std::vector<std::string> protected_paths_;  // canonical
  std::mutex change_mutex_;                         // held during a change, so that two edits of one file both count
};

// Reads until the end or `max_bytes` + 1; used where a limit is an error.
Result<std::string> ReadAll(int fd, std::size_t max_bytes, std::stop_token stop = {});

// The failure of an operating-system call on a path of the workspace, in words.
Error WorkspaceError(int error_number);

}  // namespace reprise
