#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "app/added_rules.h"
#include "app/added_servers.h"
#include "app/auto_export.h"
#include "app/chat_bucket.h"
#include "app/connected_providers.h"
#include "app/device_push.h"
#include "app/folders.h"
#include "app/tenant_parts.h"
#include "app/workspace_folders.h"
#include "base/mutex.h"
#include "base/posix_file_system.h"
#include "crypto/key_set.h"
#include "doors/api/server.h"
#include "engine/elastic_pool.h"
#include "net/curl_transport.h"
#include "remote/postgres/shared_database.h"
#include "remote/postgres/signals.h"
#include "remote/redis/redis_signals.h"
#include "reprise/audio.h"
#include "reprise/engine.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/server.h"
#include "telemetry/otlp_telemetry.h"

namespace reprise {

class SandboxedReader;

// All concrete parts of an engine, in the order in which they need each other.
class ServerParts {
 public:
  // Opens the store (and creates key file and data folder at the first start) and brings home interactions that an
  // earlier run could not save there. `new_key` gives up chats whose keys are gone. Failures are for the operator.
  static Result<std::unique_ptr<ServerParts>> Assemble(const Options& options, Extensions extensions = {},
                                                       bool new_key = false);

  // The engine of the single user; with several users, the operator's.
  Engine& engine() { return own_->engine(); }
  // Opens the HTTP server, with what the page changes, the settings of turns, and the other users and their engines;
  // all use this object. Notes its URL and these settings for commands and clients that have the data folder.
  Result<std::unique_ptr<HttpServer>> Listen(ServerOptions options, std::vector<UniqueFd> sockets = {});
  // `http` may be null. Every stream still gets its last event.
  void Stop(HttpServer* http);
  // kUnavailable, with the reason, if no interaction could be saved now. Blocks for a second at most.
  Result<void> CheckReady() { return readiness_->Check(); }

 private:
  explicit ServerParts(const Options& options) : options_(options) {}
  // Failures that do not stop the server: the bucket of the files, Redis. Blocks as CheckReady.
  std::vector<Error> CheckParts();
  void Complete(ServerOptions& server);
  void StartTelemetry();
  Result<void> OpenStores(bool new_key);
  Result<void> OpenDatabase();
  Result<std::unique_ptr<ModelDirectory>> MakeModels(const Options& options);
  Result<void> OpenModels(Extensions& extensions);
  Result<void> OpenTools(Extensions& extensions);
  TenantParts::Common CommonParts(bool is_operator);
  TenantParts::Shared Shared() { return {options_, disk_, bucket_.get(), database_.get()}; }
  TenantSource Tenants();
  Result<std::shared_ptr<Engine>> OpenTenant(const Principal& principal);
  Result<std::shared_ptr<const KeySet>> OrgKeysFor(const TenantParts::Place& place);

  const Options options_;
  PosixFileSystem disk_;
  std::shared_ptr<const KeySet> keys_;  // null if chats are plain
  std::stop_source bucket_stop_;
  std::unique_ptr<ChatBucket> bucket_;        // null if files lie with their chats
  std::unique_ptr<NotifySignals> notify_;     // null without a database
  std::unique_ptr<RedisSignals> redis_;       // null if there is only the database
  std::unique_ptr<SharedDatabase> database_;  // null if chats are in folders
  std::optional<LastInstance> last_instance_;
  CurlTransport transport_;
  CurlTransport telemetry_transport_;  // of its own, because a collector must not delay the models' answers
  const std::shared_ptr<LearnedSecrets> learned_secrets_ = std::make_shared<LearnedSecrets>();  // of the lists below
  std::optional<AutoExport> auto_export_;
  std::optional<DevicePushes> pushes_;
  std::unique_ptr<OtlpTelemetry> telemetry_;                        // null if disabled; counts what those two do
  std::map<std::string, std::shared_ptr<ModelClient>> own_models_;  // of the embedding program
  std::optional<ConnectedProviders> connected_;
  std::unique_ptr<ModelDirectory> models_;
  std::unique_ptr<Audio> audio_;
  std::shared_ptr<SandboxedReader> documents_;
  std::vector<std::shared_ptr<Tool>> own_tools_;  // of the embedding program
  std::optional<AddedServers> added_servers_;
  std::unique_ptr<WorkspaceFolders> folders_;  // refers to added_servers_
  std::optional<AddedRules> added_rules_;
  Mutex org_keys_mutex_;                                   // held while an org's key is looked up and made
  std::optional<Readiness> readiness_, bucket_readiness_;  // the second is unset without a bucket
  std::unique_ptr<TenantParts> own_;                       // its engine uses all of the above
};

// The options of the HTTP server; reads the token.
Result<ServerOptions> HttpOptionsFrom(const Options& options);
std::string UrlOf(const std::string& host, int port);

}  // namespace reprise
