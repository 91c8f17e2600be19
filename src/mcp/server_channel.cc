#include "mcp/server_channel.h"

#include "base/try.h"
#include "mcp/http_channel.h"
#include "mcp/server_command.h"
#include "mcp/stdio_channel.h"

namespace reprise {

Result<std::unique_ptr<Channel>> OpenServerChannel(const McpServerOptions& options, Transport& transport,
                                                   const std::string& directory, const std::string& workspace) {
  if (!options.url.empty()) return OpenHttpChannel(transport, {.url = options.url, .headers = options.headers});
  const auto command = TRY(ServerCommand(options, directory, workspace));
  return OpenStdioChannel(command);
}

}  // namespace reprise
