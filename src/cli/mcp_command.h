#pragma once

#include "base/environment.h"
#include "cli/command_line.h"

namespace reprise {

// `reprise mcp`: the MCP servers of the configuration, and logging in at them.
int RunMcpAdd(const CommandLine& line, const Environment& environment);
int RunMcpList(const CommandLine& line, const Environment& environment);
int RunMcpLogin(const CommandLine& line, const Environment& environment);
int RunMcpLogout(const CommandLine& line, const Environment& environment);
int RunMcpTest(const CommandLine& line, const Environment& environment);

}  // namespace reprise
