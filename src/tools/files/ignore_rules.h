#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tools/files/workspace.h"

namespace reprise {

// The rules of one directory's .gitignore and of those above it (gitignore(5)). Immutable, thread-safe.
class IgnoreRules {
 public:
  ~IgnoreRules();

  // `base` is the directory relative to the root of all paths, with a trailing slash; empty for the root itself. Lines
  // without a pattern are ignored. `above` may be null.
  static std::shared_ptr<const IgnoreRules> Parse(std::string_view text, std::string base,
                                                  std::shared_ptr<const IgnoreRules> above);

  // Whether a rule names this path below the base. Do not ask about paths within a named directory, which are ignored
  // too.
  bool Names(std::string_view path, bool is_directory) const;

 private:
  IgnoreRules() = default;
  struct Patterns;

  std::string base_;
  std::shared_ptr<const IgnoreRules> above_;
  std::unique_ptr<Patterns> patterns_;
};

// The pattern as a regular expression for the whole path, relative to the base; empty if it can match nothing.
// REQUIRES: the pattern has no "!" and no trailing slash.
std::string PatternToRegex(std::string_view pattern);

inline constexpr std::string_view kIgnoreFile = ".gitignore";

// The .gitignore files that apply to a workspace: its own and, if it lies in a git work tree, those of the folders
// above it and the work tree's `info/exclude`. Immutable; thread-safe.
class IgnoreFiles {
 public:
  using Rules = std::shared_ptr<const IgnoreRules>;  // null if nothing is ignored

  // `workspace` must outlive it.
  explicit IgnoreFiles(const Workspace& workspace);

  // The rules for the workspace's own folder, without its own file.
  Rules Above() const;
  // The rules for an opened folder, given those of its parent. `directory` is relative to the workspace; empty: the
  // workspace.
  Rules In(int fd, const std::string& directory, Rules above) const;
  // Whether `rules`, those of the path's folder, name the path.
  bool Name(const Rules& rules, const std::string& path, bool is_directory) const;

 private:
  const Workspace& workspace_;
  std::string prefix_;  // the workspace's path in its git work tree, with a trailing slash
};

}  // namespace reprise
