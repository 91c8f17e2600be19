#include "cli/mcp_server_command.h"

#include <signal.h>
#include <unistd.h>

#include "client/mcp_bridge.h"
#include "client/server_access.h"
#include "client/server_link.h"
#include "terminal/console.h"

namespace reprise {

int RunMcpServer(const CommandLine& line, const Environment& environment) {
  if (::isatty(STDIN_FILENO) != 0) {
    return Misused(
        "mcp-server speaks with a client of MCP, which starts it; `reprise chat` is for a person at a terminal");
  }
  const auto named = NamedServer(line.url, environment);
  if (!named) return ComplainOfUse(named.error());
  ServerLink link(line.flags, environment, *named, /*says_model=*/false);
  if (const auto settings = link.Check(); !settings) return ComplainOfUse(settings.error());
  ::signal(SIGPIPE, SIG_IGN);  // a client that is gone ends this by the error of a write
  return McpBridge(link, STDIN_FILENO, STDOUT_FILENO).Run();
}

}  // namespace reprise
