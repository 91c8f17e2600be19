#pragma once

#include <memory>

#include "tools/builtin_tool.h"
#include "tools/files/workspace.h"

namespace reprise {

// search_files: a regular expression over the text files of the workspace, which must outlive the tool.
std::unique_ptr<BuiltinTool> MakeSearchFilesTool(const Workspace& workspace);

}  // namespace reprise
