#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tools/files/workspace.h"

namespace reprise {

// What the .gitignore of one directory says, and those of the directories above it (gitignore(5)). Immutable,
// thread-safe.
class IgnoreRules {
 public:
  ~IgnoreRules();

  // `base`: the directory, relative to where all paths begin, with a slash behind it; empty: that itself. Lines that
  // are no patterns say nothing. `above` may be null.
  static std::shared_ptr<const IgnoreRules> Parse(std::string_view text, std::string base,
                                                  std::shared_ptr<const IgnoreRules> above);

  // Whether a path below the base is named. What lies in a directory that is named is not asked about: it is ignored.
  bool Names(std::string_view path, bool is_directory) const;

 private:
  IgnoreRules() = default;
  struct Patterns;

  std::string base_;
  std::shared_ptr<const IgnoreRules> above_;
  std::unique_ptr<Patterns> patterns_;
};

// The pattern as a regular expression for the whole path, relative to the base; empty if it can match nothing.
// REQUIRES: without "!" and the slash behind it.
std::string PatternToRegex(std::string_view pattern);

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
