#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "api/server.h"
#include "app/chat_bucket.h"
#include "app/last_instance.h"
#include "app/tenant_parts.h"
#include "app/tenant_tools.h"
#include "base/mutex.h"
#include "base/posix_file_system.h"
#include "crypto/key_set.h"
#include "engine/elastic_pool.h"
#include "mcp/mcp_servers.h"
#include "net/curl_transport.h"
#include "postgres/shared_database.h"
#include "postgres/signals.h"
#include "redis/redis_signals.h"
#include "reprise/audio.h"
#include "reprise/engine.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/server.h"
#include "rewind/local_workspace_reader.h"
#include "rewind/workspace_tracker.h"
#include "telemetry/otlp_telemetry.h"
#include "tools/shell/hook_commands.h"
#include "tools/tool_catalog.h"

namespace reprise {

class SandboxedReader;

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
  // Clients that have the data folder find the server, and what it runs turns with.
  void NoteUrl(std::string_view url);
  // Nothing that cannot be kept is waited for from now on.
  void BeginStop() {
    if (database_) database_->BeginStop();
    if (mcp_servers_) mcp_servers_->StopLogins();
  }
  // At MCP servers; null: there are none.
  ToolServerLogins* logins() { return mcp_servers_.get(); }
  // Puts in who else may use the server, and their engines, which use this object.
  void AddPeople(ServerOptions& server);
  // kUnavailable, with the reason, if no interaction could be kept now. Blocks for a second at most.
  Result<void> CheckReady() { return readiness_->Check(); }
  // What does not work now without keeping the server from working: the bucket of the files, Redis.
  // Likewise.
  std::vector<Error> CheckParts();
  // Nobody waits for the bucket any more: what is under way ends, and what comes fails.
  void LeaveBucket() { bucket_stop_.request_stop(); }
  // For what is served of it, and sent. What `source` uses must outlive StopTelemetry.
  void SendMetricsOf(std::function<std::vector<Metric>()> source);
  // What is left begins to be sent when no run is active any more, while connections close; StopTelemetry ends a second
  // later at most.
  void BeginStopTelemetry();
  void StopTelemetry();

 private:
  explicit ServerParts(const Options& options) : options_(options) {}
  void StartTelemetry();
  Result<void> OpenStores(bool new_key);
  Result<void> OpenDatabase();
  Result<void> OpenModels(Extensions& extensions);
  Result<void> OpenTools(Extensions& extensions);
  void StartMcpServers();
  TenantParts::Common CommonWith(const ToolRegistry& tools);
  TenantParts::Shared Shared() { return {options_, disk_, bucket_.get(), database_.get()}; }
  TenantSource Tenants();
  Result<std::shared_ptr<Engine>> OpenTenant(const Principal& principal);
  Result<std::shared_ptr<const KeySet>> OrgKeysFor(const TenantParts::Place& place);

  const Options options_;
  PosixFileSystem disk_;
  std::shared_ptr<const KeySet> keys_;  // null: plain
  std::stop_source bucket_stop_;
  std::unique_ptr<ChatBucket> bucket_;        // null: files are where the chats are
  std::unique_ptr<NotifySignals> notify_;     // null without a database
  std::unique_ptr<RedisSignals> redis_;       // null: the database alone
  std::unique_ptr<SharedDatabase> database_;  // null: chats are in folders
  std::optional<LastInstance> last_instance_;
  CurlTransport transport_;
  CurlTransport telemetry_transport_;  // of its own: a collector is not to hold up the thread that answers come on
  std::unique_ptr<OtlpTelemetry> telemetry_;  // null: disabled
  std::unique_ptr<ModelDirectory> models_;
  std::unique_ptr<Audio> audio_;
  std::shared_ptr<ProjectInstructions> instructions_;  // null without a system prompt
  std::shared_ptr<SandboxedReader> documents_;
  std::unique_ptr<ToolCatalog> tools_;
  std::unique_ptr<TenantTools> tenant_tools_;
  std::unique_ptr<LocalWorkspaceReader> workspace_reader_;  // null: there is no workspace
  std::unique_ptr<WorkspaceTracker> tracker_;               // null: nobody records what changes in the workspace
  Mutex org_keys_mutex_;                                    // held while an org's key is looked for and made
  std::unique_ptr<HookCommands> hooks_;
  std::unique_ptr<McpServers> mcp_servers_;
  std::optional<Readiness> readiness_, bucket_readiness_;  // the second: null without a bucket
  std::unique_ptr<TenantParts> own_;                       // its engine uses all of the above
};

// What HTTP needs of the options; reads the token.
Result<ServerOptions> HttpOptionsFrom(const Options& options);
std::string UrlOf(const std::string& host, int port);

}  // namespace reprise
