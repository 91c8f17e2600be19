#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// Allows files by what they hold now, lists those that are allowed, or takes that back.
int RunTrust(const CommandLine& line, const Environment& environment);

}  // namespace reprise
