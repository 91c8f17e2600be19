#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise search TEXT`: where messages, answers, tool calls and results of all chats hold it. Finding nothing is no
// failure. Returns the exit status: kExitFailure also if something could not be read, and so not be searched.
int RunSearch(const CommandLine& line, const Environment& environment);

}  // namespace reprise
