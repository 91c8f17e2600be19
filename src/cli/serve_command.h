#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise serve`: runs the server until SIGINT or SIGTERM. Prints one line, `reprise listening on http://HOST:PORT`,
// when it accepts connections. Returns the exit status.
int RunServe(const CommandLine& line, const Environment& environment);

}  // namespace reprise
