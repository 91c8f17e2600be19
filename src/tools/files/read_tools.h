#pragma once

#include <memory>

#include "tools/builtin_tool.h"
#include "tools/files/workspace.h"

// Tools that look at the workspace, which must outlive them.
namespace reprise {

std::unique_ptr<BuiltinTool> MakeListFilesTool(const Workspace& workspace);
std::unique_ptr<BuiltinTool> MakeReadFileTool(const Workspace& workspace);

}  // namespace reprise
