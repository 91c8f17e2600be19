#pragma once

#include <memory>
#include <string>

#include "mcp/channel.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "reprise/transport.h"

namespace reprise {

// Starts the command (in `directory`, or where the configuration says; see ServerCommand) or prepares the connection of
// a configured server. `transport` must outlive the channel.
Result<std::unique_ptr<Channel>> OpenServerChannel(const McpServerOptions& options, Transport& transport,
                                                   const std::string& directory, const std::string& workspace);

}  // namespace reprise
