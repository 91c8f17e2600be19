#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise verify [FILE|CHAT[/INTERACTION]]...`: what is wrong with which file. Returns the exit status: kExitFailure
// if anything is.
int RunVerify(const CommandLine& line, const Environment& environment);

}  // namespace reprise
