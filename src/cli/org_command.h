#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// `reprise users org delete`: all that the users of an organization have, and the key that it was sealed by.
int RunOrgDelete(const CommandLine& line, const Environment& environment);

}  // namespace reprise
