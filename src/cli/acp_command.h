#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// `reprise acp`: an agent for editors, on standard input and output, by the server of the data folder.
int RunAcp(const CommandLine& line, const Environment& environment);

}  // namespace reprise
