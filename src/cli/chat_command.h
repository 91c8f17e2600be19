#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// `reprise chat [CHAT]`: a conversation with a running server, line by line.
int RunChat(const CommandLine& line, const Environment& environment);

}  // namespace reprise
