#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/posix_file_system.h"
#include "crypto/key_file.h"
#include "engine/readiness.h"
#include "http/server.h"
#include "mcp/mcp_servers.h"
#include "net/curl_transport.h"
#include "postgres/postgres_parts.h"
#include "reprise/engine.h"
#include "reprise/grant_store.h"
#include "reprise/interaction_store.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/run_store.h"
#include "reprise/server.h"
#include "store/audit_file.h"
#include "store/file_interaction_store.h"
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

  Engine& engine() { return *engine_; }
  // For commands that look for the server of this data folder.
  void NoteUrl(std::string_view url) {
    if (folder_) folder_->NoteUrl(url);
  }
  // Nothing that cannot be kept is waited for from now on.
  void BeginStop() {
    if (postgres_) postgres_->BeginStop();
  }
  // kUnavailable, with the reason, if no interaction could be kept now. Blocks for a second at most.
  Result<void> CheckReady() { return readiness_->Check(); }

 private:
  ServerParts() = default;
  Result<void> OpenStores(const Options& options, bool new_key);
  Result<void> OpenFolder(const Options& options);
  Result<void> OpenDatabase(const Options& options);
  Result<void> OpenModels(const Options& options, Extensions& extensions);
  Result<void> OpenTools(const Options& options, Extensions& extensions);
  void StartMcpServers(const Options& options);

  PosixFileSystem disk_;
  std::shared_ptr<const KeySet> keys_;  // null: plain
  // Chats are in the one or in the other.
  std::unique_ptr<FileInteractionStore> folder_;
  std::unique_ptr<RunStore> folder_runs_;
  std::unique_ptr<FileStore> folder_files_;
  std::unique_ptr<PostgresParts> postgres_;
  InteractionStore* store_ = nullptr;
  RunStore* runs_ = nullptr;
  FileStore* files_ = nullptr;
  std::vector<std::unique_ptr<InteractionStore>> fallback_stores_;
  std::unique_ptr<GrantStore> grants_;  // null: none are kept
  CurlTransport transport_;
  std::unique_ptr<ModelDirectory> models_;
  std::unique_ptr<ToolCatalog> tools_;
  std::unique_ptr<AuditFile> audit_;
  std::unique_ptr<HookCommands> hooks_;
  std::unique_ptr<McpServers> mcp_servers_;
  std::optional<Readiness> readiness_;
  std::unique_ptr<Engine> engine_;  // it uses all of the above
};

// What HTTP needs of the options; reads the token.
Result<ServerOptions> HttpOptionsFrom(const Options& options);
std::string UrlOf(const std::string& host, int port);

}  // namespace reprise
