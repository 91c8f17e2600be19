#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// Moves chats to the trash. kExitFailure if one of them could not be.
int RunRm(const CommandLine& line, const Environment& environment);

// Lists the trash, or brings one chat of it back under its name.
int RunRestore(const CommandLine& line, const Environment& environment);

}  // namespace reprise
