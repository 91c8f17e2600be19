#pragma once

#include <memory>

#include "tools/builtin_tool.h"
#include "tools/shell/command_runner.h"

namespace reprise {

// run_shell: a command line.
std::unique_ptr<BuiltinTool> MakeShellTool(std::shared_ptr<const CommandRunner> runner);

}  // namespace reprise
