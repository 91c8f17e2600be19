#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/system.h"
#include "reprise/options.h"
#include "reprise/result.h"

// Content that the agent's tools could have written is used or run only after a person has allowed its digest: a
// configuration that was found and not named, programs in the workspace, modules of the system prompt there.

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

// The present workspace files that the server would run (hooks, MCP servers) or give to models (prompt modules). Fails
// as FilesOfPrograms does, and for an unreadable file.
Result<FileDigests> FilesToTrust(const Options& options);

// A folder that a person has allowed is listed by its path, with the digest of that path.
FileDigests FolderToTrust(const std::string& folder);
// Whether this is the user's home folder. Chats work there only after a person has allowed it (FolderToTrust).
bool IsHomeFolder(const std::string& folder, const Environment& environment);
bool IsFolderAllowed(const std::string& trust_file, const std::string& folder);
// Ok if chats may work in options.workspace: it is not the home folder, or is allowed. Otherwise asks at the terminal
// if `ask`, and stores the answer; kForbidden (reason "workspace_not_allowed") names the remedy.
Result<void> RequireHomeConsent(const Options& options, const Environment& environment, bool ask);

// The effects of a configuration, in lines for the person who is asked to allow it: what differs from the defaults, and
// every key that the files of Options::asked set. No secrets: only the names of variables and headers.
std::string WhatItWouldDo(const Options& options, const FileDigests& files);

// The single-valued keys of the configuration that affect how a turn runs, but not how a server listens, logs and
// stops, with their values. No secrets.
std::vector<std::pair<std::string, std::string>> ValuesOfTurns(const Options& options);

// Ok if a person has allowed the present content of all `files`. Otherwise asks at the terminal, shows the effects of
// `options`, and stores the answer; without a terminal, a yes, or `ask`: kForbidden (reason "untrusted"), which names
// the files and the remedy.
Result<void> RequireTrust(const Options& options, const FileDigests& files, bool ask = true);

}  // namespace reprise
