#pragma once

#include <filesystem>
#include <string>

#include "process/supervised_process.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// How a configured server is run: its program looked up in PATH, in `directory` (or the configured `cwd`), with PATH,
// HOME, USER, LOGNAME, SHELL, LANG, LC_ALL, TERM, TZ and TMPDIR of this process and the configured variables, and
// nothing else. PATH is without relative folders and those in `workspace`: others write there. kNotFound if there is no
// such program, or no folder `cwd`.
Result<Command> ServerCommand(const McpServerOptions& options, const std::string& directory,
                              const std::string& workspace);

// True of programs that run what their first file argument holds: "node", "python3.11".
bool IsInterpreter(const std::string& program);

// True of those that run a folder too (its __main__.py, index.js, package.json).
bool RunsFolders(const std::string& program);

// True of a file that by its name holds no code: a database, a table, a text, a picture, a log.
bool IsDataFile(const std::filesystem::path& file);

// What a person agrees to of how a server is run or reached: the command with its arguments and variables or the
// address, the program that is found for it and what that file holds; likewise the file that an interpreter is given,
// and every argument that is a file in the workspace, but for data (IsDataFile). Changes when one of them does. Headers
// are left out, as tokens in them change by themselves. Fails as ServerCommand does, or if a file cannot be read.
Result<std::string> LaunchDigest(const McpServerOptions& options, const std::string& directory,
                                 const std::string& workspace);

}  // namespace reprise
