#pragma once

#include <memory>

#include "tools/builtin_tool.h"

namespace reprise {

// research{question}: what a sub-agent finds out about it.
std::unique_ptr<BuiltinTool> MakeResearchTool();

}  // namespace reprise
