#pragma once

#include <memory>

#include "tools/builtin_tool.h"

// Tools with which an agent keeps its tasks and its plan (reprise/agenda.h).
namespace reprise {

std::unique_ptr<BuiltinTool> MakeManageTasksTool();
std::unique_ptr<BuiltinTool> MakeUpdatePlanTool();

}  // namespace reprise
