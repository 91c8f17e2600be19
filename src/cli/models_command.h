#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// Lists the models that can be named: those of the running server, else those of the configuration.
int RunModels(const CommandLine& line, const Environment& environment);

}  // namespace reprise
