#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// `reprise users token`: the tokens of a server that is for several people. A running one notices each change itself.
int RunTokenAdd(const CommandLine& line, const Environment& environment);
int RunTokenList(const CommandLine& line, const Environment& environment);
int RunTokenRevoke(const CommandLine& line, const Environment& environment);

}  // namespace reprise
