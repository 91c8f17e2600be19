#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/system.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

enum class Symlinks {
  kInside,  // follow links that stay beneath
  kRefuse,
};

// Opens `path` beneath the directory `root`. Neither "..", an absolute path, a symbolic link nor a magic link in /proc
// leads out of it, not even during concurrent renames. On failure the descriptor is empty and errno is EXDEV (leads
// out), ELOOP (a symbolic link that may not be followed), else as for openat(2). Uses openat2(2), or OpenBeneathByWalk
// if the kernel lacks it. Thread-safe.
UniqueFd OpenBeneath(int root, const std::string& path, int flags, Symlinks symlinks);

// The same with only openat(2), component by component. Refuses every symbolic link and every "..".
UniqueFd OpenBeneathByWalk(int root, const std::string& path, int flags);

// Whether the user's secrets in the workspace may be touched: only if a person agreed to this very call.
enum class Secrets { kClosed, kOpen };

// The directory of the file tools. No path from a model reaches anything outside: not by "..", absolute paths, symbolic
// links or /proc, and not while another process swaps directories for links. Protected paths inside (the server's own
// files) are out of reach too, and so are the user's secrets unless a person was asked. Thread-safe; changes of files
// through one Workspace happen one at a time.
//
// Paths are relative to the workspace, or absolute and inside it. Reads follow symbolic links that stay inside, changes
// follow none.
//
// Failures, with messages for the model: kInvalidArgument (not a path, not a regular file, a directory), kForbidden
// (leads outside, protected, a closed secret, a link where none may be), kNotFound, kTooLarge, kStorageFull, kIo.
class Workspace {
 public:
  // Ignores secret paths that contain the workspace, because a person has chosen to work there.
  Workspace(const std::string& directory, const std::vector<std::string>& protected_paths,
            const std::vector<std::string>& secret_paths = {});

  // Absolute, with symbolic links resolved as far as it exists.
  const std::string& directory() const { return directory_; }
  const std::vector<std::string>& protected_paths() const { return protected_paths_; }

  // Opens the workspace itself. kIo if there is no folder any more, or if it, or a folder above it, has become a
  // symbolic link, which may lead into another workspace.
  Result<UniqueFd> OpenRoot(int flags = O_PATH) const;
  // Opens a regular file to read; never blocks (on a pipe, say).
  Result<UniqueFd> OpenFile(std::string_view path, Secrets secrets = Secrets::kClosed) const;
  Result<UniqueFd> OpenDirectory(std::string_view path, Secrets secrets = Secrets::kClosed) const;
  // Opens either.
  Result<UniqueFd> OpenAny(std::string_view path, Secrets secrets = Secrets::kClosed) const;

  // Opens a regular file or directory with this `name` (one component) in a directory opened here. Follows no link.
  Result<UniqueFd> OpenEntry(int directory, const std::string& name, Secrets secrets = Secrets::kClosed) const;

  // kTooLarge beyond `max_bytes`.
  Result<std::string> ReadFile(std::string_view path, std::size_t max_bytes, Secrets secrets = Secrets::kClosed) const;

  // Replaces the content, or creates the file and the directories above it; all or nothing. An existing file keeps its
  // permissions. True if the file is new.
  Result<bool> WriteFile(std::string_view path, std::string_view content, Secrets secrets = Secrets::kClosed);
  // Replaces the content by the result of `change`, unless that is an error.
  Result<void> ChangeFile(std::string_view path, std::size_t max_bytes,
                          const std::function<Result<std::string>(std::string)>& change,
                          Secrets secrets = Secrets::kClosed);
  // Reads the file that WriteFile, ChangeFile or DeleteFile would act on, under the same rules. nullopt if it, or a
  // directory above it, does not exist. Follows no link.
  Result<std::optional<std::string>> ReadForChange(std::string_view path, std::size_t max_bytes,
                                                   Secrets secrets = Secrets::kClosed) const;
  // Checks whether WriteFile, or ChangeFile if `must_exist`, could change the file; fails as they would. Does not open
  // secrets.
  Result<void> CheckChange(std::string_view path, bool must_exist) const;
  // The shortest path relative to the workspace, as those three use it. kForbidden if it leads outside.
  Result<std::string> PathInWorkspace(std::string_view path) const;
  // Makes several changes, all or none, unless a file is not as `before` any more (kConflict) or cannot be written. A
  // change with `after` alone makes a new file.
  struct Change {
    std::string path;
    std::optional<std::string> before, after;  // nullopt: there is no file
    std::string moved_from{};                  // the file whose permissions it gets; empty: its own
  };
  Result<void> ChangeFiles(const std::vector<Change>& changes, Secrets secrets = Secrets::kClosed);
  // Removes a file or a symbolic link (not what it points to); no directories.
  Result<void> DeleteFile(std::string_view path, Secrets secrets = Secrets::kClosed);

  // Whether the open file or directory, or the entry `name` in it, is protected.
  bool IsProtected(int fd, std::string_view name = {}) const;
  // The same for secrets, ignoring case, as some file systems do.
  bool IsSecret(int fd, std::string_view name = {}) const;
  // The places where a path leads, relative to the workspace ("." is the workspace): by its text, and by the current
  // links. Empty if one is outside.
  std::vector<std::string> PlacesOf(std::string_view path) const;
  // The program ("git") that runs or obeys the file at this path by itself, also through links; empty if none is known.
  std::string WhoRuns(std::string_view path) const;
  // The home folder relative to the workspace; empty if it lies elsewhere.
  const std::string& home() const { return home_; }
  // Whether a tool would touch a secret at this path, judging by the files that exist now.
  bool LeadsToSecret(std::string_view path) const;

 private:
  struct Target {  // an entry that may not exist, in a directory that does
    UniqueFd parent;
    std::string name;
  };

  Result<UniqueFd> Open(std::string_view path, int flags, Secrets secrets) const;
  Result<void> Check(int fd, std::string_view name, Secrets secrets) const;
  Result<std::string> Relative(std::string_view path) const;
  Result<Target> OpenParent(std::string_view path, bool create, Secrets secrets) const;
  Result<bool> Replace(std::string_view path, std::string_view content, bool create, Secrets secrets);
  Result<void> Unlink(std::string_view path, Secrets secrets);

  const std::string directory_;
  const std::string directory_as_given_;
  const std::vector<std::string> protected_paths_;  // canonical
  const std::vector<std::string> secret_paths_;     // canonical; only those in the workspace
  const std::string home_;
  Mutex change_mutex_;  // held during a change, so that concurrent edits of one file both count
};

// The reason to ask about a call with a `path` even if its tool needs no approval; nullopt if it touches no secret.
std::optional<std::string> ReasonToAskFor(const Workspace& workspace, std::string_view arguments);
// The same for a tool that changes files; also a reason for files that other programs run.
std::optional<std::string> ReasonToAskToChange(const Workspace& workspace, std::string_view arguments);
std::optional<std::string> ReasonToAskToChangePath(const Workspace& workspace, const std::string& path);
inline Secrets OpenIfAsked(const ToolContext& context) {
  return context.knows_secrets ? Secrets::kOpen : Secrets::kClosed;
}

// Reads to the end; kTooLarge beyond `max_bytes`.
Result<std::string> ReadAll(int fd, std::size_t max_bytes, std::stop_token stop = {});

// The error for a failed system call on a path of the workspace.
Error WorkspaceError(int error_number);

}  // namespace reprise
