#pragma once

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
  kInside,  // followed as long as they stay beneath
  kRefuse,
};

// Opens `path` beneath the directory `root`: neither "..", an absolute path, a symbolic link nor a magic link in /proc
// leads out of it, also not while somebody renames what lies on the way. On failure the descriptor is empty and errno
// says why: EXDEV (leads out), ELOOP (a symbolic link that may not be followed), else as openat(2). Uses openat2(2), or
// OpenBeneathByWalk where the kernel has none. Thread-safe.
UniqueFd OpenBeneath(int root, const std::string& path, int flags, Symlinks symlinks);

// The same with nothing but openat(2), component by component. Refuses every symbolic link and every "..".
UniqueFd OpenBeneathByWalk(int root, const std::string& path, int flags);

// Whether the user's secrets that lie in the workspace may be touched: only if a person has agreed to this very call.
enum class Secrets { kClosed, kOpen };

// The one directory file tools work in. Whatever path a model gives, nothing outside is reached: not by "..", absolute
// paths, symbolic links or /proc, and not while another process swaps directories for links. Protected paths (the
// server's own files) are out of reach too, even inside, and the user's secrets unless somebody was asked. Thread-safe;
// changes of files made through one Workspace happen one at a time.
//
// Paths are relative to the workspace; an absolute path that names something inside it is understood too. Reading
// follows symbolic links that stay inside, changing follows none.
//
// Failures, with messages for the model: kInvalidArgument (not a path, not a regular file, a directory), kForbidden
// (leads outside, protected, a closed secret, a link where none may be), kNotFound, kTooLarge, kStorageFull, kIo.
class Workspace {
 public:
  // A secret path that the workspace itself lies in is none: somebody has chosen to work there.
  Workspace(const std::string& directory, const std::vector<std::string>& protected_paths,
            const std::vector<std::string>& secret_paths = {});

  // Absolute, without symbolic links as far as it exists.
  const std::string& directory() const { return directory_; }
  const std::vector<std::string>& protected_paths() const { return protected_paths_; }

  // A regular file to read; never waits (for a pipe's other end, say).
  Result<UniqueFd> OpenFile(std::string_view path, Secrets secrets = Secrets::kClosed) const;
  Result<UniqueFd> OpenDirectory(std::string_view path, Secrets secrets = Secrets::kClosed) const;
  // Either of both.
  Result<UniqueFd> OpenAny(std::string_view path, Secrets secrets = Secrets::kClosed) const;

  // A regular file or directory named `name` (one component) in a directory that was opened here. Follows no link.
  Result<UniqueFd> OpenEntry(int directory, const std::string& name, Secrets secrets = Secrets::kClosed) const;

  // kTooLarge beyond `max_bytes`.
  Result<std::string> ReadFile(std::string_view path, std::size_t max_bytes, Secrets secrets = Secrets::kClosed) const;

  // Replaces the content or creates the file and the directories above it; all or nothing, and an existing file keeps
  // its permissions. True: it is new.
  Result<bool> WriteFile(std::string_view path, std::string_view content, Secrets secrets = Secrets::kClosed);
  // Replaces the content by what `change` makes of it, if it makes anything.
  Result<void> ChangeFile(std::string_view path, std::size_t max_bytes,
                          const std::function<Result<std::string>(std::string)>& change,
                          Secrets secrets = Secrets::kClosed);
  // What WriteFile, ChangeFile or DeleteFile would meet, by the same rules; nullopt: there is no such file yet, and no
  // directory above it perhaps. Follows no link.
  Result<std::optional<std::string>> ReadForChange(std::string_view path, std::size_t max_bytes,
                                                   Secrets secrets = Secrets::kClosed) const;
  // Whether WriteFile could write there, or ChangeFile (`must_exist`), with the failure that they would have. Secrets
  // are not opened.
  Result<void> CheckChange(std::string_view path, bool must_exist) const;
  // Relative to the workspace, in its shortest form, as those three take it. kForbidden: it leads outside.
  Result<std::string> PathInWorkspace(std::string_view path) const;
  // Removes a file or a symbolic link (not what it points to); no directories.
  Result<void> DeleteFile(std::string_view path, Secrets secrets = Secrets::kClosed);

  // Whether the open file or directory, or the entry `name` in it, is protected.
  bool IsProtected(int fd, std::string_view name = {}) const;
  // Likewise; upper and lower case count as the same, as they do on some file systems.
  bool IsSecret(int fd, std::string_view name = {}) const;
  // Where a path leads, relative to the workspace ("." is the workspace): by its letters, and by the links that are
  // there now. Empty: outside.
  std::vector<std::string> PlacesOf(std::string_view path) const;
  // Who runs or obeys by itself what stands at this path ("git"), wherever a link leads; empty: nobody that is known.
  std::string WhoRuns(std::string_view path) const;
  // The home folder relative to the workspace; empty: it is not in there.
  const std::string& home() const { return home_; }
  // Whether a tool that is given this path would touch a secret, as far as what is there now tells.
  bool LeadsToSecret(std::string_view path) const;

 private:
  struct Target {  // an entry that may not exist, in a directory that does
    UniqueFd parent;
    std::string name;
  };

  Result<UniqueFd> OpenRoot() const;
  Result<UniqueFd> Open(std::string_view path, int flags, Secrets secrets) const;
  Result<void> Check(int fd, std::string_view name, Secrets secrets) const;
  Result<std::string> Relative(std::string_view path) const;
  Result<Target> OpenParent(std::string_view path, bool create, Secrets secrets) const;
  Result<bool> Replace(std::string_view path, std::string_view content, bool create, Secrets secrets);

  const std::string directory_;
  const std::string directory_as_given_;
  const std::vector<std::string> protected_paths_;  // canonical
  const std::vector<std::string> secret_paths_;     // canonical; those in the workspace
  const std::string home_;
  Mutex change_mutex_;  // held during a change, so that two edits of one file both count
};

// Why a call of a tool with a `path` asks though its tool may not; nullopt: it touches no secret.
std::optional<std::string> ReasonToAskFor(const Workspace& workspace, std::string_view arguments);
// The same of a tool that changes what is there: it asks about what others run, too.
std::optional<std::string> ReasonToAskToChange(const Workspace& workspace, std::string_view arguments);
inline Secrets OpenIfAsked(const ToolContext& context) {
  return context.knows_secrets ? Secrets::kOpen : Secrets::kClosed;
}

// Reads until the end or `max_bytes` + 1; used where a limit is an error.
Result<std::string> ReadAll(int fd, std::size_t max_bytes, std::stop_token stop = {});

// The failure of an operating-system call on a path of the workspace, in words.
Error WorkspaceError(int error_number);

}  // namespace reprise
