#pragma once

#include "cli/command_line.h"
#include "cli/environment.h"

namespace reprise {

// Allows files by what they hold now, lists those that are allowed, or takes that back.
int RunTrust(const CommandLine& line, const Environment& environment);

}  // namespace reprise
