#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise export [CHAT[/INTERACTION]]...`: what can be read of the chats, as JSON documents, Markdown or JSONL; what
// cannot is named. Returns the exit status: kExitFailure also if something is missing from the output.
int RunExport(const CommandLine& line, const Environment& environment);

}  // namespace reprise
