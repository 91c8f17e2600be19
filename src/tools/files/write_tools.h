#pragma once

#include <memory>

#include "tools/builtin_tool.h"
#include "tools/files/workspace.h"

// Tools that change files of the workspace, which must outlive them. All ask before they run.
namespace reprise {

std::unique_ptr<BuiltinTool> MakeWriteFileTool(Workspace& workspace);
std::unique_ptr<BuiltinTool> MakeEditFileTool(Workspace& workspace);
std::unique_ptr<BuiltinTool> MakeDeleteFileTool(Workspace& workspace);

}  // namespace reprise
