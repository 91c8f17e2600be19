#pragma once

#include <string>
#include <vector>

#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// The workspace files that commands of hooks and MCP servers name. No tool may touch them, because the server will run
// them. Canonical paths. Checks each word of a command, and the text after its first '=' ("--rules=./a.txt"). Skips
// folders, data after the script (IsDataFile of mcp/server_launch.h), and text within a word (as in `sh -c`).
//
// Hooks run in the workspace, MCP servers outside (in `cwd`, or a folder of their own), where their relative words
// lead. Only an MCP server's command itself, with a '/', is relative to Reprise's working directory.
//
// kInvalidArgument, with a message for the person at the terminal, for a file that tools could replace:
//  - a program, or another word with a '/', that does not exist in the workspace. A missing word with white space or
//    "://" is a text or an address;
//  - a workspace folder that is the script of a program that runs folders ("python3 ./server"), or that a runner works
//    in or from ("npm --prefix", "make -C");
//  - a file reached in the workspace through a symbolic link or "..", or one with further names (hard links);
//  - a hook's program that PATH finds in the workspace (MCP servers' programs are not looked up there);
//  - an MCP server's `cwd` in the workspace, or a variable in its `env` that makes programs load code from there.
Result<std::vector<std::string>> FilesOfPrograms(const Options& options);

}  // namespace reprise
