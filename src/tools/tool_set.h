#pragma once

#include <memory>

#include "reprise/tool.h"
#include "tools/tool_options.h"

namespace reprise {

// The built-in tools: echo calculator current_time list_files read_file search_files write_file edit_file delete_file
// run_shell http_get, as far as the options allow them. Cheap: neither the workspace nor the sandbox is touched before
// they are used.
std::unique_ptr<ToolRegistry> MakeBuiltinTools(ToolOptions options);

}  // namespace reprise
