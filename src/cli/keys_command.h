#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise keys init`: creates the key file if there is none. `reprise keys list`: the keys' ids. Neither ever prints
// what the keys are. Both return the exit status.
int RunKeysInit(const CommandLine& line, const Environment& environment);
int RunKeysList(const CommandLine& line, const Environment& environment);

}  // namespace reprise
