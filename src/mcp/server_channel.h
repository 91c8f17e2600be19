#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mcp/channel.h"
#include "mcp/oauth_authorizer.h"
#include "mcp/session.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "reprise/transport.h"

namespace reprise {

// Who has the tokens for a configured server, where somebody logs in; null for others. `browser` may be empty.
std::shared_ptr<HttpAuthorizer> AuthorizerFor(const McpServerOptions& options, Transport& transport,
                                              OAuthCredentials& credentials, std::string redirect_uri,
                                              OAuthBrowser browser);

// The folders that a configured server is told to work in.
std::vector<SessionRoot> RootsFor(const McpServerOptions& options, const std::string& workspace);

// Starts the command (in `directory`, or where the configuration says; see ServerCommand) or prepares the connection of
// a configured server. `transport` must outlive the channel.
Result<std::unique_ptr<Channel>> OpenServerChannel(const McpServerOptions& options, Transport& transport,
                                                   const std::string& directory, const std::string& workspace,
                                                   std::shared_ptr<HttpAuthorizer> authorizer = nullptr);

}  // namespace reprise
