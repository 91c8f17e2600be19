#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise man`: the man page of a command, or of all of them into files of a folder. Returns the exit status.
int RunMan(const CommandLine& line, const Environment& environment);

// `reprise completion`: the script for a shell, or the chats' ids for such a script.
int RunCompletion(const CommandLine& line, const Environment& environment);

}  // namespace reprise
