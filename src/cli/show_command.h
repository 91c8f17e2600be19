#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise show FILE|CHAT[/INTERACTION]`: for reading. Returns the exit status.
int RunShow(const CommandLine& line, const Environment& environment);

}  // namespace reprise
