#pragma once

#include "cli/command_line.h"

namespace reprise {

// Runs recorded interactions again on what their record says (or prints their events) and says where they are not the
// same. kExitFailure at a divergence, at what cannot be read, and if there is no such chat or file.
int RunReplay(const CommandLine& line, const Environment& environment);

}  // namespace reprise
