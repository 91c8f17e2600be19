#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/builtin_tool.h"
#include "tools/tool_options.h"
#include "tools/workspace.h"

namespace reprise {

// run_shell in the workspace, which must outlive the tool; in the sandbox where there is one. Reads HOME, PATH and the
// like from the server's environment now, not later.
std::unique_ptr<BuiltinTool> MakeShellTool(const Workspace& workspace, ShellOptions options);

}  // namespace reprise
