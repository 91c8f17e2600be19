#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// `reprise mcp-server`: the Model Context Protocol on standard input and output, by the server of the data folder.
int RunMcpServer(const CommandLine& line, const Environment& environment);

}  // namespace reprise
