#include "cli/acp_command.h"

#include <signal.h>
#include <unistd.h>

#include "acp/agent.h"
#include "client/server_access.h"
#include "client/server_link.h"
#include "terminal/console.h"

namespace reprise {

int RunAcp(const CommandLine& line, const Environment& environment) {
  if (::isatty(STDIN_FILENO) != 0) {
    return Misused("acp speaks with an editor, which starts it; `reprise chat` is for a person at a terminal");
  }
  const auto named = NamedServer(line.url, environment);
  if (!named) return ComplainOfUse(named.error());
  ServerLink link(line.flags, environment, *named, /*says_model=*/true);
  if (const auto settings = link.Check(); !settings) return ComplainOfUse(settings.error());
  ::signal(SIGPIPE, SIG_IGN);  // a client that is gone ends this by the error of a write
  return acp::Agent(link, STDIN_FILENO, STDOUT_FILENO).Run();
}

}  // namespace reprise
