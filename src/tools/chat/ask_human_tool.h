#pragma once

#include <memory>

#include "tools/builtin_tool.h"

namespace reprise {

// Puts a question to whoever follows the run; the answer is the tool's result.
std::unique_ptr<BuiltinTool> MakeAskHumanTool();

}  // namespace reprise
