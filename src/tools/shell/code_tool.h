#pragma once

#include <memory>

#include "tools/builtin_tool.h"
#include "tools/shell/command_runner.h"

namespace reprise {

// run_code: a program in Python or for the shell.
std::unique_ptr<BuiltinTool> MakeCodeTool(std::shared_ptr<const CommandRunner> runner);

}  // namespace reprise
