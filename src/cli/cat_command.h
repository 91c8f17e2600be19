#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise cat FILE|CHAT[/INTERACTION]`: plaintext JSON, one value on one line (a journal: one for each record).
// Returns the exit status.
int RunCat(const CommandLine& line, const Environment& environment);

}  // namespace reprise
