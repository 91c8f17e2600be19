#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// Lists what waits for a person in every chat of the running server, or answers one approval.
int RunApprovals(const CommandLine& line, const Environment& environment);

}  // namespace reprise
