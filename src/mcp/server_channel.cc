#include "mcp/server_channel.h"

#include "mcp/http_channel.h"
#include "mcp/server_command.h"
#include "mcp/stdio_channel.h"

namespace reprise {

Result<std::unique_ptr<Channel>> OpenServerChannel(const McpServerOptions& options, Transport& transport,
                                                   const std::string& directory, const std::string& workspace) {
  if (!options.url.empty()) return OpenHttpChannel(transport, {.url = options.url, .headers = options.headers});
  const auto command = ServerCommand(options, directory, workspace);
  if (!command) return Fail(command.error());
  return OpenStdioChannel(*command);
}

}  // namespace reprise
