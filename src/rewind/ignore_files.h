#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rewind/ignore_rules.h"
#include "tools/files/workspace.h"

namespace reprise {

inline constexpr std::string_view kIgnoreFile = ".gitignore";

// The .gitignore files that speak of a workspace: its own, and where it lies in a git work tree, those of the folders
// above it and the work tree's `info/exclude`. Immutable; thread-safe.
class IgnoreFiles {
 public:
  using Rules = std::shared_ptr<const IgnoreRules>;  // null: nothing is ignored

  // `workspace` must outlive it.
  explicit IgnoreFiles(const Workspace& workspace);

  // What counts in the workspace's own folder, without the file that lies there.
  Rules Above() const;
  // What counts in an opened folder, given what counts in the one above it. `directory` is relative to the workspace;
  // empty: the workspace.
  Rules In(int fd, const std::string& directory, Rules above) const;
  // Whether rules of the folder that a path lies in name it.
  bool Name(const Rules& rules, const std::string& path, bool is_directory) const;

 private:
  const Workspace& workspace_;
  std::string prefix_;  // of the workspace in its git work tree, with a slash behind it
};

}  // namespace reprise
