#include "mcp/server_channel.h"

#include <utility>

#include "base/try.h"
#include "mcp/http_channel.h"
#include "mcp/server_command.h"
#include "mcp/stdio_channel.h"

namespace reprise {

std::shared_ptr<HttpAuthorizer> AuthorizerFor(const McpServerOptions& options, Transport& transport,
                                              OAuthCredentials& credentials, std::string redirect_uri,
                                              OAuthBrowser browser) {
  if (!options.auth) return nullptr;
  OAuthClientOptions client{.client_id = options.auth->client_id,
                            .client_secret = options.auth->client_secret,
                            .client_metadata_url = options.auth->client_metadata_url,
                            .issuer = options.auth->issuer,
                            .scopes = {}};
  for (const std::string& scope : options.auth->scopes) client.scopes = ScopeUnion(client.scopes, scope);
  return std::make_shared<OAuthAuthorizer>(OAuthAuthorizer::Parts{.transport = transport,
                                                                  .credentials = credentials,
                                                                  .server = options.name,
                                                                  .url = options.url,
                                                                  .options = std::move(client),
                                                                  .redirect_uri = std::move(redirect_uri),
                                                                  .browser = std::move(browser)});
}

std::vector<SessionRoot> RootsFor(const McpServerOptions& options, const std::string& workspace) {
  if (!options.roots) return {{.path = workspace, .name = "workspace"}};
  std::vector<SessionRoot> roots;
  for (const std::string& path : *options.roots) {
    roots.push_back({.path = path, .name = path.substr(path.find_last_of('/') + 1)});
  }
  return roots;
}

Result<std::unique_ptr<Channel>> OpenServerChannel(const McpServerOptions& options, Transport& transport,
                                                   const std::string& directory, const std::string& workspace,
                                                   std::shared_ptr<HttpAuthorizer> authorizer) {
  if (!options.url.empty()) {
    return OpenHttpChannel(transport,
                           {.url = options.url, .headers = options.headers, .authorizer = std::move(authorizer)});
  }
  const auto command = TRY(ServerCommand(options, directory, workspace));
  return OpenStdioChannel(command);
}

}  // namespace reprise
