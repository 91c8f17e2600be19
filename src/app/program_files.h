#pragma once

#include <string>
#include <vector>

#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// The files in the workspace that the commands of hooks and MCP servers name, which no tool may touch: the server is
// going to run them. Canonical paths. Looked at are the words of each command, and what follows the first '=' of one
// ("--rules=./a.txt"). Folders are passed over, data after the script (IsDataFile of mcp/server_launch.h), and so is
// what a word contains otherwise (the text of `sh -c`).
//
// Hooks run in the workspace, MCP servers outside (in `cwd`, or a folder of their own): a relative word of theirs names
// something there. Only their command itself, with a '/', is relative to where Reprise runs.
//
// kInvalidArgument, with a message for the person at the terminal, for a file that could be put in another's place:
//  - a program, or another word with a '/', that names nothing in the workspace. A word with white space or "://"
//    is a text or an address if it names nothing.
//  - a folder in the workspace that is given as the script to what runs folders ("python3 ./server"), or to a runner as
//    the one to run in or from ("npm --prefix", "make -C");
//  - one reached in the workspace by way of a symbolic link or of "..", or one with further names (hard links);
//  - a hook's program that is found in the workspace by way of PATH (MCP servers' are not looked for there);
//  - an MCP server's `cwd` in the workspace, or a variable in its `env` that leads programs there for what they load.
Result<std::vector<std::string>> FilesOfPrograms(const Options& options);

}  // namespace reprise
