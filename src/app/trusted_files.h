#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/environment.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

inline constexpr const char* kTrustedFileName = "trusted.json";

// Files by their path and the SHA-256 ("sha256:...") of what they hold.
using FileDigests = std::map<std::string, std::string>;

// The files that a person has allowed to be obeyed or run, as they were then: kept in a file of its own (0600, replaced
// as a whole; schemas/trusted.schema.json) in the configuration folder, which is closed to every tool. Read anew each
// time, so that what is allowed or taken back counts for a running server too. Who changes it holds a lock on its
// folder, so that none of several loses what another has written.
class TrustedFiles {
 public:
  // Empty: nothing is allowed, and nothing can be.
  explicit TrustedFiles(std::string path) : path_(std::move(path)) {}

  // kForbidden if others could have written the list, kCorruption if it is damaged; for the person at the terminal.
  Result<FileDigests> Read() const;
  Result<void> Allow(const FileDigests& files) const;
  // False: it was not allowed.
  Result<bool> Revoke(const std::string& path) const;

 private:
  Result<void> Write(const FileDigests& files) const;

  std::string path_;
};

// $XDG_CONFIG_HOME/reprise, else ~/.config/reprise; none if neither is known.
std::optional<std::string> ConfigFolder(const Environment& environment);

// By what name a file is allowed: its absolute path, in which the folders are free of symbolic links and the last name
// is as it was given. A link is so allowed where it lies, for what it leads to.
std::string PlaceOf(const std::string& path);

// Whether tools that work in `workspace` could write `path`: it lies there or leads there, and not into
// `config_folder`, which is closed to them.
bool OpenToTools(const std::string& path, const std::string& workspace, const std::string& config_folder);

}  // namespace reprise
