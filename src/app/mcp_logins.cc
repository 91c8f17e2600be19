#include "app/mcp_logins.h"

#include <utility>

#include "app/chat_keys.h"
#include "app/embedded.h"
#include "base/posix_file_system.h"
#include "base/try.h"
#include "mcp/oauth_credentials.h"
#include "mcp/server_login.h"
#include "net/curl_transport.h"
#include "store/file_names.h"

namespace reprise {

Result<McpServerOptions> FindMcpServer(const Options& options, const std::string& name) {
  for (const McpServerOptions& server : options.mcp_servers) {
    if (server.name == name) return server;
  }
  return Fail(ErrorCode::kNotFound,
              "no MCP server " + name + " is configured; \"reprise mcp list\" shows those that are");
}

Result<McpLoginState> ReadMcpLogin(const Options& options, const McpServerOptions& server) {
  if (!server.auth) return McpLoginState::kNotNeeded;
  auto keys = TRY(KeysFor(options));
  OAuthCredentials credentials(Disk(), McpLoginsFile(options.data_dir), std::move(keys));
  const auto login = TRY(credentials.Look(server.name, server.url));
  return login.tokens.access_token.empty() ? McpLoginState::kLoggedOut : McpLoginState::kLoggedIn;
}

Result<bool> LogInAtMcp(const Options& options, const McpServerOptions& server, std::uint16_t port,
                        const std::function<void(const std::string& url)>& show) {
  auto keys = TRY(KeysForWriting(options, options.data_dir));
  OAuthCredentials credentials(Disk(), McpLoginsFile(options.data_dir), std::move(keys));
  CurlTransport transport;
  const ServerLogin login{.transport = transport,
                          .credentials = credentials,
                          .workspace = options.workspace,
                          .client_version = std::string(Version()),
                          .port = port};
  return LogInAtServer(server, login, show, {});
}

Result<bool> LogOutAtMcp(const Options& options, const McpServerOptions& server) {
  auto keys = TRY(KeysFor(options));
  OAuthCredentials credentials(Disk(), McpLoginsFile(options.data_dir), std::move(keys));
  return credentials.Forget(server.name);
}

}  // namespace reprise
