#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/trusted_files.h"
#include "reprise/options.h"
#include "reprise/result.h"

// What the agent's tools could have written is obeyed or run only after a person has allowed it, by its digest:
// a configuration that was found and not named, programs in the workspace, parts of the system prompt there.
namespace reprise {

// The files in the workspace that the server would run (hooks, MCP servers) or tell models (prompt modules), as they
// are now. Fails as FilesOfPrograms does, and for one that cannot be read.
Result<FileDigests> FilesToTrust(const Options& options);

// What a configuration would have the server do, in lines for the person who is asked to allow it. No secrets: of
// variables and headers the names.
std::string WhatItWouldDo(const Options& options, const FileDigests& files);

// Keys of the configuration that are single values and decide how a turn runs, not how a server listens, logs and
// stops; each once, with what they are. No secrets.
std::vector<std::pair<std::string, std::string>> ValuesOfTurns(const Options& options);

// Ok if all of `files` have been allowed as they are. Otherwise asks at the terminal, showing what `options` would do,
// and keeps the answer; kForbidden (reason "untrusted"), naming the files and what to do, without a terminal or a yes.
// `ask`: without, it is as if there were no terminal.
Result<void> RequireTrust(const Options& options, const FileDigests& files, bool ask = true);

}  // namespace reprise
