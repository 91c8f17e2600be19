#include <signal.h>
#include <unistd.h>

#include "base/try.h"
#include "cli/commands.h"
#include "client/acp/agent.h"
#include "client/mcp_bridge.h"
#include "client/server_access.h"
#include "client/server_link.h"
#include "terminal/console.h"

namespace reprise {
namespace {

// Talks to the parent process, a `client`, until that ends.
template <typename Bridge>
Exited RunBridge(const CommandLine& line, const Environment& environment, const std::string& client) {
  if (::isatty(STDIN_FILENO) != 0) {
    return Misused(line.command + " speaks with " + client +
                   ", which starts it; `reprise chat` is for a person at a terminal");
  }
  const auto named = TRY(OfUse(NamedServer(line.url, environment)));
  ServerLink link(line.flags, environment, named, /*restarts=*/false);
  TRY(OfUse(link.Check()));
  ::signal(SIGPIPE, SIG_IGN);  // the failed write ends this process when the client is gone
  const int status = Bridge(link, STDIN_FILENO, STDOUT_FILENO).Run();
  return link.is_refused() ? kExitFailure : status;
}

}  // namespace

Exited RunAcp(const CommandLine& line, const Environment& environment) {
  return RunBridge<acp::Agent>(line, environment, "an editor");
}

Exited RunMcpServer(const CommandLine& line, const Environment& environment) {
  return RunBridge<McpBridge>(line, environment, "a client of MCP");
}

}  // namespace reprise
