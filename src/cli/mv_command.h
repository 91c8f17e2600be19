#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// Gives a chat another title. Its id stays: its files are sealed to that.
int RunMv(const CommandLine& line, const Environment& environment);

}  // namespace reprise
