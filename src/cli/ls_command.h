#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise ls [CHAT]`: the chats, or a chat's interactions. Returns the exit status.
int RunLs(const CommandLine& line, const Environment& environment);

}  // namespace reprise
