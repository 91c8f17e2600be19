#include "app/mcp_checks.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "app/chat_keys.h"
#include "app/embedded.h"
#include "app/mcp_folder.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "mcp/client.h"
#include "mcp/oauth_authorizer.h"
#include "mcp/server_launch.h"
#include "mcp/session.h"
#include "net/curl_transport.h"
#include "store/file_names.h"

namespace reprise {
namespace {

Finding CheckMcpServer(const McpServerOptions& server, Transport& transport, OAuthCredentials& credentials,
                       const std::string& workspace, const std::string& folders) {
  const std::string check = "MCP server " + server.name;
  const auto failed = [&](const Error& error) { return Finding{check, Verdict::kFailure, error.message}; };
  std::optional<ServerFolder> folder;
  if (!server.command.empty() && server.cwd.empty()) {
    auto made = ServerFolder::Make(folders, server.name);
    if (!made) return failed(made.error());
    folder.emplace(*std::move(made));
  }
  const auto open = [&] {
    return OpenServerChannel(server, transport, folder ? folder->path() : server.cwd, workspace,
                             AuthorizerFor(server, transport, credentials, "", nullptr));
  };
  auto channel = open();
  if (!channel) return failed(channel.error());
  SessionHooks hooks;
  hooks.roots = RootsFor(server, workspace);
  std::optional<Session> connected(std::in_place, *std::move(channel), hooks);
  const RequestOptions options{.timeout = server.startup_timeout};
  auto facts = Greet(*connected, std::string(Version()), McpEra::kUnknown, options);
  if (!facts && facts.error().reason == kMcpProbeRefused && !server.command.empty()) {
    channel = open();
    if (!channel) return failed(channel.error());
    connected.emplace(*std::move(channel), hooks);
    facts = Greet(*connected, std::string(Version()), McpEra::kHandshake, options);
  }
  Session& session = *connected;
  if (!facts) return failed(session.closed().value_or(facts.error()));
  std::string words = facts->name + " " + facts->version + " answers (protocol " + facts->protocol + ")";
  if (facts->tools) {
    const auto tools = ListTools(session, options);
    if (!tools) return failed(session.closed().value_or(tools.error()));
    words += " and has " + Counted(tools->size(), "tool");
  }
  if (server.trust_annotations) words += "; it is believed about which of them only read";
  return {check, Verdict::kOk, std::move(words)};
}

}  // namespace

std::vector<Finding> CheckMcpServers(const Options& options) {
  std::vector<Finding> findings;
  CurlTransport transport;
  std::error_code failed;
  const std::string workspace = std::filesystem::weakly_canonical(options.workspace, failed).string();
  const std::string folders = options.mcp_servers.empty() ? "" : McpFolder(options);
  auto keys = KeysFor(options);
  OAuthCredentials credentials(Disk(), McpLoginsFile(options.data_dir), keys ? *std::move(keys) : nullptr);
  for (const McpServerOptions& server : options.mcp_servers) {
    findings.push_back(CheckMcpServer(server, transport, credentials, workspace, folders));
  }
  return findings;
}

}  // namespace reprise
