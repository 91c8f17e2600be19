#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise man`: the man page of a command, as it was built or installed beside the program; or the grammar that the
// pages are made of. Returns the exit status.
int RunMan(const CommandLine& line, const Environment& environment);

// `reprise completion`: the script for a shell, likewise, or the chats' ids for such a script.
int RunCompletion(const CommandLine& line, const Environment& environment);

}  // namespace reprise
