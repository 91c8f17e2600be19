#pragma once

#include <string>

#include "process/supervised_process.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// How a configured server is run: its program looked up in PATH, in `directory`, with PATH, HOME, USER, LOGNAME, SHELL,
// LANG, LC_ALL, TERM, TZ and TMPDIR of this process and the configured variables, and nothing else. kNotFound if there
// is no such program.
Result<Command> ServerCommand(const McpServerOptions& options, const std::string& directory);

}  // namespace reprise
