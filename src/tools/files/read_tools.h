#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tools/builtin_tool.h"
#include "tools/files/workspace.h"

// Tools that look at the workspace, which must outlive them.
namespace reprise {

std::unique_ptr<BuiltinTool> MakeListFilesTool(const Workspace& workspace);
// `elsewhere` opens files outside of the workspace, if it may (null: none); kForbidden otherwise.
std::unique_ptr<BuiltinTool> MakeReadFileTool(const Workspace& workspace,
                                              std::function<Result<UniqueFd>(const std::string& path)> elsewhere = {});

}  // namespace reprise
