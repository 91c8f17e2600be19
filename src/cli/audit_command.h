#pragma once

#include "cli/command_line.h"

namespace reprise {

// Prints the data folder's audit log, beside a running server too.
int RunAudit(const CommandLine& line, const Environment& environment);

}  // namespace reprise
