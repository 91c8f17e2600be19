#pragma once

#include <functional>
#include <memory>

#include "reprise/timestamp.h"
#include "tools/builtin_tool.h"

// Tools that touch nothing outside the process.
namespace reprise {

std::unique_ptr<BuiltinTool> MakeEchoTool();
std::unique_ptr<BuiltinTool> MakeCalculatorTool();
// Names of time zones are those of the system's zoneinfo.
std::unique_ptr<BuiltinTool> MakeCurrentTimeTool(std::function<Timestamp()> now);

}  // namespace reprise
