#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/trusted_files.h"
#include "reprise/options.h"
#include "reprise/result.h"

// Content that the agent's tools could have written is used or run only after a person has allowed its digest: a
// configuration that was found and not named, programs in the workspace, modules of the system prompt there.
namespace reprise {

// The present workspace files that the server would run (hooks, MCP servers) or give to models (prompt modules). Fails
// as FilesOfPrograms does, and for an unreadable file.
Result<FileDigests> FilesToTrust(const Options& options);

// The effects of a configuration, in lines for the person who is asked to allow it. No secrets: only the names of
// variables and headers.
std::string WhatItWouldDo(const Options& options, const FileDigests& files);

// The single-valued keys of the configuration that affect how a turn runs, but not how a server listens, logs and
// stops, with their values. No secrets.
std::vector<std::pair<std::string, std::string>> ValuesOfTurns(const Options& options);

// Ok if a person has allowed the present content of all `files`. Otherwise asks at the terminal, shows the effects of
// `options`, and stores the answer; without a terminal, a yes, or `ask`: kForbidden (reason "untrusted"), which names
// the files and the remedy.
Result<void> RequireTrust(const Options& options, const FileDigests& files, bool ask = true);

}  // namespace reprise
