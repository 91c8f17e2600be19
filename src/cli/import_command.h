#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise import PATH...`: brings chats in as new ones, each as a whole or not at all. No server may use the data
// folder meanwhile. Returns the exit status: kExitFailure if any chat was not brought in.
int RunImport(const CommandLine& line, const Environment& environment);

}  // namespace reprise
