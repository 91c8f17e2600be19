#pragma once

#include <string>

#include "reprise/options.h"

namespace reprise {

// The folder, outside the workspace and for this user only, in which MCP servers get their folders to start in:
// reprise/mcp of $XDG_RUNTIME_DIR, else of $XDG_CACHE_HOME (~/.cache), else reprise-<uid>/mcp of $TMPDIR (/tmp). It is
// made if it is not there. Empty: none of them is usable; servers with a `cwd` start all the same.
std::string McpFolder(const Options& options);

}  // namespace reprise
