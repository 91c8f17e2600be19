#include "mcp/mcp_servers.h"

#include <utility>

namespace reprise {

McpServers::McpServers(const std::vector<McpServerOptions>& servers, Parts parts)
    : consents_(parts.file_system, std::move(parts.approvals_file), parts.keys),
      credentials_(parts.file_system, std::move(parts.logins_file), std::move(parts.keys)) {
  for (const McpServerOptions& options : servers) {
    connections_.push_back(
        std::make_shared<ServerConnection>(options, ServerConnection::Parts{.transport = parts.transport,
                                                                            .consents = consents_,
                                                                            .credentials = credentials_,
                                                                            .workspace = parts.workspace,
                                                                            .folders = parts.folders,
                                                                            .client_version = parts.client_version,
                                                                            .on_change = parts.on_change}));
  }
}

McpServers::~McpServers() {
  for (const auto& connection : connections_) connection->RequestStop();
  for (const auto& connection : connections_) connection->Stop();
}

void McpServers::Start() {
  for (const auto& connection : connections_) connection->Start();
}

}  // namespace reprise
