#include "app/mcp_logins.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "app/chat_keys.h"
#include "app/embedded.h"
#include "base/atomic_write.h"
#include "base/posix_file_system.h"
#include "base/try.h"
#include "mcp/oauth_authorizer.h"
#include "mcp/server_login.h"
#include "net/curl_transport.h"
#include "store/data_folder.h"
#include "store/file_names.h"

namespace reprise {

Result<McpServerOptions> FindMcpServer(const Options& options, const std::string& name) {
  for (const McpServerOptions& server : options.mcp_servers) {
    if (server.name == name) return server;
  }
  return Fail(ErrorCode::kNotFound,
              "no MCP server " + name + " is configured; \"reprise mcp list\" shows those that are");
}

namespace {

// A fresh home has neither this file nor a key for it.
bool AreThereLogins(const Options& options) {
  std::error_code failed;
  return std::filesystem::exists(McpLoginsFile(options.data_dir), failed) || failed;
}

}  // namespace

Result<McpLoginState> ReadMcpLogin(const Options& options, const McpServerOptions& server) {
  if (!server.auth) return McpLoginState::kNotNeeded;
  if (!AreThereLogins(options)) return McpLoginState::kLoggedOut;
  auto keys = TRY(KeysFor(options));
  OAuthCredentials credentials(Disk(), McpLoginsFile(options.data_dir), std::move(keys));
  const auto login = TRY(credentials.Look(server.name, server.url));
  return login.tokens.access_token.empty() ? McpLoginState::kLoggedOut : McpLoginState::kLoggedIn;
}

Result<bool> LogInAtMcp(const Options& options, const McpServerOptions& server, std::uint16_t port,
                        const std::function<void(const std::string& url)>& show) {
  auto keys = TRY(KeysForWriting(options, options.data_dir));
  TRY(CheckPrivateDirectory(options.data_dir));
  TRY(CreateDirectories(Disk(), options.data_dir));  // no server may have run here yet
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
  if (!AreThereLogins(options)) return false;
  auto keys = TRY(KeysFor(options));
  OAuthCredentials credentials(Disk(), McpLoginsFile(options.data_dir), std::move(keys));
  return credentials.Forget(server.name);
}

}  // namespace reprise
