#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace reprise {

// The part of the user's git configuration that commands of the agent may have: who commits, and how commits, merges
// and texts are to look. Settings that run programs, name files or may hold a secret are left out. Thread-safe.
//
//   GitConfiguration git({.directory = workspace, .environment = {"HOME=" + home, "PATH=/usr/bin"}});
//   git.Text();  // "[user]\n\tname = \"A\"\n..."
class GitConfiguration {
 public:
  struct Options {
    std::string directory;                 // where git runs, for settings that depend on it (includeIf)
    std::vector<std::string> environment;  // "NAME=value", for git: it needs HOME to find the user's files
    std::vector<std::string> files;        // the user's files; it is read again when one of them changes
  };
  // For the user whose HOME, XDG_CONFIG_HOME and GIT_CONFIG_GLOBAL this process has.
  static Options OfThisUser(const std::string& directory);

  explicit GitConfiguration(Options options) : options_(std::move(options)) {}

  // Empty if git is not installed or the user has no such settings. Runs git(1) (some milliseconds) at the first call
  // and after a change.
  std::string Text() const;

 private:
  // What tells a file from its next version.
  std::string State() const;

  const Options options_;
  mutable Mutex mutex_;
  mutable std::optional<std::string> state_ GUARDED_BY(mutex_);
  mutable std::string text_ GUARDED_BY(mutex_);
};

// The permitted settings in the output of `git config --list -z`, as a configuration file.
std::string PermittedGitSettings(std::string_view listed);

}  // namespace reprise
