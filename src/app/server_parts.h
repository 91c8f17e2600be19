#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/tenant_parts.h"
#include "app/tenant_tools.h"
#include "base/posix_file_system.h"
#include "crypto/key_file.h"
#include "engine/readiness.h"
#include "http/server.h"
#include "mcp/mcp_servers.h"
#include "net/curl_transport.h"
#include "reprise/engine.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/server.h"
#include "tools/shell/hook_commands.h"
#include "tools/tool_catalog.h"

namespace reprise {

// Everything concrete that an engine is made of, in the order in which the parts need each other.
class ServerParts {
 public:
  // Opens the store (creating key file and data folder at the first start) and brings home what an earlier run could
  // not save there. Failures are for the person at the terminal.
  // `new_key`: chats whose keys are gone are given up.
  static Result<std::unique_ptr<ServerParts>> Assemble(const Options& options, Extensions extensions = {},
                                                       bool new_key = false);

  // Of the single user; of a server for several people the operator's.
  Engine& engine() { return own_->engine(); }
  // For commands that look for the server of this data folder.
  void NoteUrl(std::string_view url) { own_->NoteUrl(url); }
  // Puts in who else may use the server, and their engines, which use this object.
  void AddPeople(ServerOptions& server);
  // kUnavailable, with the reason, if no interaction could be kept now. Blocks for a second at most.
  Result<void> CheckReady() { return readiness_->Check(); }

 private:
  explicit ServerParts(const Options& options) : options_(options) {}
  Result<void> OpenStores(bool new_key);
  Result<void> OpenModels(Extensions& extensions);
  Result<void> OpenTools(Extensions& extensions);
  void StartMcpServers();
  TenantParts::Common CommonWith(const ToolRegistry& tools);
  Result<std::shared_ptr<Engine>> OpenTenant(const Principal& principal);

  const Options options_;
  PosixFileSystem disk_;
  std::shared_ptr<const KeySet> keys_;  // null: plain
  CurlTransport transport_;
  std::unique_ptr<ModelDirectory> models_;
  std::unique_ptr<ToolCatalog> tools_;
  std::unique_ptr<TenantTools> tenant_tools_;
  std::unique_ptr<HookCommands> hooks_;
  std::unique_ptr<McpServers> mcp_servers_;
  std::optional<Readiness> readiness_;
  std::unique_ptr<TenantParts> own_;  // its engine uses all of the above
};

// What HTTP needs of the options; reads the token.
Result<ServerOptions> HttpOptionsFrom(const Options& options);
std::string UrlOf(const std::string& host, int port);

}  // namespace reprise
