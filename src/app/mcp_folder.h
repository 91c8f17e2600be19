#pragma once

#include <string>

#include "reprise/options.h"

namespace reprise {

// The folder, outside the workspace and for this user only, that holds the start folders of MCP servers: reprise/mcp of
// $XDG_RUNTIME_DIR, else of $XDG_CACHE_HOME (~/.cache), else reprise-<uid>/mcp of $TMPDIR (/tmp). Created if missing.
// Empty if none is usable; servers with a `cwd` start all the same.
std::string McpFolder(const Options& options);

}  // namespace reprise
