#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// Copies a branch of a chat into a new chat.
int RunFork(const CommandLine& line, const Environment& environment);

}  // namespace reprise
