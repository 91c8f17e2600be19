#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/environment.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

inline constexpr const char* kTrustedFileName = "trusted.json";

// Files by path, with the SHA-256 ("sha256:...") of their content.
using FileDigests = std::map<std::string, std::string>;

// The files that a person has allowed to be used or run, with their content at that time: a list in a file of its own
// (0600, replaced as a whole; schemas/trusted.schema.json) in the configuration folder, which is closed to every tool.
// Read anew each time, so that changes count for a running server too. Writers lock the folder, so that concurrent
// changes are not lost.
class TrustedFiles {
 public:
  // With an empty path nothing is, or can be, allowed.
  explicit TrustedFiles(std::string path) : path_(std::move(path)) {}

  // kForbidden if others could have written the list, kCorruption if it is damaged; for the person at the terminal.
  Result<FileDigests> Read() const;
  Result<void> Allow(const FileDigests& files) const;
  // False if it was not allowed.
  Result<bool> Revoke(const std::string& path) const;

 private:
  Result<void> Write(const FileDigests& files) const;

  std::string path_;
};

// $XDG_CONFIG_HOME/reprise, else ~/.config/reprise; none if neither is known.
std::optional<std::string> ConfigFolder(const Environment& environment);

// The name under which a file is allowed: its absolute path, with symbolic links resolved in its folders but not in its
// last part. A link is thus allowed at its place, for the content it leads to.
std::string PlaceOf(const std::string& path);

// Whether tools in `workspace` could write `path`: it lies or leads there, and not into `config_folder`, which is
// closed to them.
bool OpenToTools(const std::string& path, const std::string& workspace, const std::string& config_folder);

}  // namespace reprise
