#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "reprise/result.h"
#include "tools/files/ignore_rules.h"
#include "tools/files/workspace.h"

namespace reprise {

// In bytes; longer paths are out of reach.
inline constexpr std::size_t kLongestPath = 4'000;

// Whether this WorkspaceError is of something that is there, and not closed by us, but cannot be read.
bool IsUnreadable(const Error& error);

// Whether a directory entry is always left alone: git's own and temporary files of Reprise.
bool IsLeftAlone(std::string_view name);

struct WalkRules {
  std::size_t most_entries = 300'000;  // to look at
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  std::stop_token stop = {};
  bool with_ignored = false;                                     // files that .gitignore names
  bool with_hidden = true;                                       // names that begin with a dot
  std::function<bool(std::string_view name)> accepts = nullptr;  // of files and directories; null: all
};

// One walk through a directory of the workspace, level by level, so that entries near the top are always found. It
// stays on one file system, follows no links, and skips what cannot be opened: secret, protected, gone, another user's.
class WorkspaceWalk {
 public:
  // All must outlive it.
  WorkspaceWalk(const Workspace& workspace, const IgnoreFiles& ignored, WalkRules rules)
      : workspace_(workspace), ignored_(ignored), rules_(std::move(rules)) {}

  // A file or a symbolic link: its path relative to the workspace, and its name in an open directory.
  using Found = std::function<void(std::string path, int directory, const char* name)>;
  // `start`: a directory, "." for the workspace. Failures as of Workspace::OpenDirectory.
  Result<void> Through(const std::string& start, Secrets secrets, const Found& found);

  bool complete() const { return complete_; }
  // Directories that were passed over because they cannot be read.
  std::size_t unread() const { return unread_; }
  bool is_over() const;

 private:
  struct Folder {
    std::string path;  // with a trailing slash; empty: the workspace
    IgnoreFiles::Rules rules_above;
  };
  void Look(const Folder& folder, UniqueFd opened, const Found& found);
  bool IsWanted(const std::string& path, std::string_view name, bool is_directory,
                const IgnoreFiles::Rules& rules) const;

  const Workspace& workspace_;
  const IgnoreFiles& ignored_;
  const WalkRules rules_;
  std::deque<Folder> folders_;
  dev_t device_ = 0;
  std::size_t looked_at_ = 0;
  std::size_t unread_ = 0;
  bool complete_ = true;
};

}  // namespace reprise
