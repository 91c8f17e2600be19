#include "app/server_parts.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/embedded.h"
#include "app/factories.h"
#include "app/keys.h"
#include "app/options.h"
#include "app/secrets.h"
#include "app/settings.h"
#include "base/atomic_write.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/private_file.h"
#include "base/system.h"
#include "base/try.h"
#include "remote/postgres/postgres_tenant_stores.h"
#include "store/data_folder.h"
#include "tools/documents/sandboxed_reader.h"

namespace reprise {
namespace {

// The address for clients on this machine: a wildcard address includes the loopback one.
std::string ReachableHost(const std::string& host) {
  if (host == "0.0.0.0") return "127.0.0.1";
  return host == "::" ? "::1" : host;
}

std::string ProviderOf(std::string_view model) { return std::string(model.substr(0, model.find('/'))); }

// The configured models, and those of the embedding program.
class ExtendedModels final : public ModelDirectory {
 public:
  ExtendedModels(std::unique_ptr<ModelDirectory> configured, std::map<std::string, std::shared_ptr<ModelClient>> own,
                 std::string default_model)
      : configured_(std::move(configured)), own_(std::move(own)), default_model_(std::move(default_model)) {}

  Result<Resolved> Resolve(std::string_view name) const override {
    if (name.empty()) name = default_model_;
    const std::string provider = ProviderOf(name);
    const auto own = own_.find(provider);
    if (own == own_.end()) return configured_->Resolve(name);
    const std::string_view model = name.substr(std::min(name.size(), provider.size() + 1));
    return Resolved{.client = own->second.get(), .model = std::string(model), .full_name = std::string(name)};
  }
  const std::string& default_model() const override { return default_model_; }
  std::vector<Entry> List() const override {
    std::vector<Entry> all = configured_->List();
    for (const auto& [provider, client] : own_) {
      all.push_back({.name = provider, .provider = provider});
      for (const std::string& model : client->KnownModels()) {
        all.push_back({.name = provider + "/" + model, .provider = provider});
      }
    }
    return all;
  }
  std::vector<LeftOutTool> LeftOutTools() const override {
    std::vector<LeftOutTool> all = configured_->LeftOutTools();
    for (const auto& [provider, client] : own_) {
      for (LeftOutTool& each : client->LeftOutTools()) all.push_back(std::move(each));
    }
    return all;
  }

 private:
  const std::unique_ptr<ModelDirectory> configured_;
  const std::map<std::string, std::shared_ptr<ModelClient>> own_;
  const std::string default_model_;
};

Error BucketSilent() { return Refused(Reason::kBucketUnreachable, "the bucket of the chats' files does not answer"); }

Error RedisAway() {
  return Refused(Reason::kRedisUnreachable, "Redis is away; servers tell each other through the database");
}

}  // namespace

std::vector<Error> ServerParts::CheckParts() {
  std::vector<Error> failing;
  if (bucket_readiness_) {
    if (auto checked = bucket_readiness_->Check(); !checked) failing.push_back(std::move(checked.error()));
  }
  if (redis_ && !redis_->is_connected()) failing.push_back(RedisAway());
  return failing;
}

Result<std::unique_ptr<ServerParts>> ServerParts::Assemble(const Options& options, Extensions extensions,
                                                           bool new_key) {
  TRY(WorkspaceOf(options));
  if (BucketPlace::Parse(options.auto_export.to) && !options.bucket) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "export.auto is a bucket, but no S3 server is configured: it is reached with the address and the keys of "
        "\"files\": {\"type\": \"s3\", ...}");
  }
  std::unique_ptr<ServerParts> parts(new ServerParts(options));
  TRY(parts->OpenStores(new_key));
  parts->StartTelemetry();
  TRY(parts->OpenModels(extensions));
  TRY(parts->OpenTools(extensions));

  if (options.budget.max_cost_per_chat > 0 && !options.prices.contains(options.model)) {
    LogWarning("max_cost_per_chat does not hold for a model without a price", {{"model", options.model}});
  }
  if (!options.has_workspace())
    LogInfo("no workspace (workspace_mode): tools for files and commands and local MCP servers are off");
  parts->folders_->StartServers();  // before the engine looks up tools of interrupted runs
  TRY(parts->own_->Start(parts->CommonParts(/*is_operator=*/true)));
  return parts;
}

Result<std::unique_ptr<HttpServer>> ServerParts::Listen(ServerOptions options, std::vector<UniqueFd> sockets) {
  if (!options.ready) options.ready = [this] { return CheckReady(); };
  options.failing = [this] { return CheckParts(); };
  Complete(options);
  auto server = TRY(OpenServer(engine(), std::move(options), std::move(sockets)));
  if (telemetry_) telemetry_->SetSource([http = server.get()] { return http->CollectMetrics(); });
  Json settings = SettingsOfTurns(options_, ProcessEnvironment());
  settings[kOfAllChats] = SettingsOfAllChats(options_, ProcessEnvironment());
  if (auto noted = ReplaceFile(disk_, SettingsFileOf(options_), DumpJson(settings) + "\n"); !noted) {
    LogWarning("the settings could not be noted for clients", {{"detail", noted.error().message}});
  }
  own_->NoteUrl(UrlOf(ReachableHost(server->host()), server->port()));
  return server;
}

// First new work stops, then the runs end, then the connections; nothing waits long for what is unavailable.
void ServerParts::Stop(HttpServer* http) {
  if (http != nullptr) http->BeginStop();
  bucket_stop_.request_stop();
  if (database_) database_->BeginStop();
  folders_->home()->servers()->StopLogins();
  engine().Stop();
  if (http != nullptr) http->StopSite();
  if (telemetry_) telemetry_->BeginStop();  // no run is active: the rest is sent while connections close
  if (http != nullptr) http->Stop();
  if (telemetry_) telemetry_->Stop();
}

void ServerParts::StartTelemetry() {
  auto_export_.emplace(options_.auto_export, SecretsOf(options_, environ), learned_secrets_, options_.bucket,
                       telemetry_transport_, disk_);
  pushes_.emplace(
      DevicePushes::Parts{.options = options_, .transport = telemetry_transport_, .disk = disk_, .keys = keys_});
  for (const std::string& problem : options_.telemetry.problems) LogWarning(problem + "; it does not count");
  if (options_.telemetry.disabled) return;
  TelemetryOptions telemetry = options_.telemetry;
  telemetry.service_version = Version();
  telemetry_ = std::make_unique<OtlpTelemetry>(telemetry_transport_, telemetry);
  telemetry_->Also([this](std::vector<Metric>& metrics) {
    auto_export_->Collect(metrics);
    pushes_->Collect(metrics);
  });
}

Result<void> ServerParts::OpenStores(bool new_key) {
  readiness_.emplace([this]() -> Result<void> {
    TRY(ProbeFolder(disk_, options_.data_dir));
    return database_ ? database_->CheckReady() : Result<void>();
  });
  const FolderUse use = new_key ? FolderUse::kGiveUp : FolderUse::kAdd;
  keys_ = TRY(KeysForServing(options_, use));
  if (keys_ && new_key) TRY(GiveUpKeysOfDatabase(options_, *keys_));
  if (keys_) KeepInMemory(*keys_);
  if (keys_ && OthersMayReplace(KeyFileOf(options_))) {
    LogWarning("other users may replace the key file: its folder is not for its owner alone", {});
  }
  bucket_ = TRY(ChatBucket::Open(options_, bucket_stop_.get_token()));
  if (bucket_) {
    bucket_readiness_.emplace([this] { return bucket_->Check(); }, Readiness::Limits{.silent = BucketSilent()});
  }
  if (options_.store.type == StoreOptions::Type::kPostgres) TRY(OpenDatabase());
  own_ = TRY(TenantParts::Open(Shared(), {.owner = {}, .tenant = {}, .folder = options_.data_dir, .keys = keys_}));
  return {};
}

// The data folder still holds this server's own records: the consents to tools of MCP servers.
Result<void> ServerParts::OpenDatabase() {
  TRY(CreateDirectories(disk_, options_.data_dir));
  const std::string& listen_url = options_.store.listen_url.empty() ? options_.store.url : options_.store.listen_url;
  notify_ = TRY(NotifySignals::Open(listen_url));
  Signals* signals = notify_.get();
  if (!options_.redis.urls.empty()) {
    redis_ =
        TRY(RedisSignals::Open({.urls = options_.redis.urls, .ca_file = options_.redis.ca_file, .otherwise = signals}));
    signals = redis_.get();
  }
  database_ =
      TRY(SharedDatabase::Open({.url = options_.store.url, .signals = signals, .version = std::string(Version())}));
  last_instance_.emplace(LastInstance::Take(options_.data_dir, disk_));
  if (last_instance_->ended()) database_->lease().DeclareDead(*last_instance_->ended());
  last_instance_->Note(database_->lease().instance());
  return {};
}

TenantParts::Common ServerParts::CommonParts(bool is_operator) {
  std::function<ToolRules()> added_rules;
  if (is_operator) added_rules = [this] { return added_rules_->Now(); };
  return {.models = *models_,
          .folders = *folders_,
          .is_operator = is_operator,
          .audio = audio_.get(),
          .documents = documents_.get(),
          .telemetry = telemetry_.get(),
          .auto_export = &*auto_export_,
          .pushes = &*pushes_,
          .learned_secrets = learned_secrets_,
          .added_rules = std::move(added_rules)};
}

void ServerParts::Complete(ServerOptions& server) {
  server.logins = folders_->home()->servers();
  server.providers = &*connected_;
  server.push = &*pushes_;
  server.tool_servers = &*added_servers_;
  server.rules = &*added_rules_;
  server.settings = DigestOf(SettingsOfTurns(options_, ProcessEnvironment()));
  server.settings_of_all_chats = DigestOf(SettingsOfAllChats(options_, ProcessEnvironment()));
  std::shared_ptr<ApiTokenStore> tokens;
  if (database_) {
    tokens = std::make_shared<PostgresApiTokens>(database_->database());
  } else {
    tokens = std::make_shared<ApiTokenFile>(TokensFileOf(options_), TokenUsesFileOf(options_));
  }
  server.people = MakeAuthenticator(options_, transport_, std::move(tokens));
  if (server.people) server.tenants = Tenants();
}

TenantSource ServerParts::Tenants() {
  TenantSource source{.open = [this](const Principal& principal) { return OpenTenant(principal); },
                      .list = [this] { return ListTenants(options_.data_dir, disk_); },
                      .left = [this] { return ListTenants(options_.data_dir, disk_); }};
  if (!database_) return source;
  const auto or_none = [](Result<std::vector<Principal>> tenants) {
    if (!tenants) LogWarning("the list of users cannot be read", {{"detail", tenants.error().detail}});
    return tenants.value_or(std::vector<Principal>());
  };
  source.list = [this, or_none] { return or_none(database_->ListTenants()); };
  source.left = [this, or_none] { return or_none(database_->ListLeft()); };
  source.watch = [this](std::function<void(const Principal&)> left) { database_->WatchLeft(std::move(left)); };
  return source;
}

Result<std::shared_ptr<Engine>> ServerParts::OpenTenant(const Principal& principal) {
  TenantParts::Place place{.owner = principal,
                           .tenant = TenantOf(principal),
                           .folder = TenantFolder(options_.data_dir, principal),
                           .keys = nullptr};
  if (database_) {
    TRY(database_->NoteTenant(place.tenant, principal));
  } else {
    TRY(MarkTenantFolder(place.folder, principal, disk_));
  }
  if (keys_) place.keys = TRY(OrgKeysFor(place));
  std::shared_ptr<TenantParts> parts = TRY(TenantParts::Open(Shared(), std::move(place)));
  TRY(parts->Start(CommonParts(/*is_operator=*/false)));
  return std::shared_ptr<Engine>(parts, &parts->engine());
}

Result<std::shared_ptr<const KeySet>> ServerParts::OrgKeysFor(const TenantParts::Place& place) {
  const MutexLock lock(org_keys_mutex_);
  const std::string& org = place.owner.org;
  const std::string kept = TRY(database_ ? NewOrgKey(*keys_, org).and_then([&](const std::string& fresh) {
    return database_->OrgKey(org, fresh, *keys_);
  })
                                         : OrgKeyOf(place.folder, org, *keys_, disk_));
  if (kept.empty()) return MissingOrgKey(org);
  return KeysOfTenant(*keys_, place.owner, kept);
}

Result<void> ServerParts::OpenModels(Extensions& extensions) {
  own_models_ = std::move(extensions.models);
  connected_.emplace(ConnectedProviders::Parts{.options = options_,
                                               .transport = transport_,
                                               .disk = disk_,
                                               .keys = keys_,
                                               .secrets = *learned_secrets_,
                                               .audit = own_->audit()});
  models_ = TRY(MakeModels(options_));
  audio_ = TRY(MakeAudio(transport_, options_));
  documents_ = MakeDocumentReader(options_);
  return {};
}

Result<std::unique_ptr<ModelDirectory>> ServerParts::MakeModels(const Options& options) {
  Options configured = options;
  if (own_models_.contains(ProviderOf(options.model))) configured.model = "offline";
  auto models = WithConnected(TRY(MakeModelDirectory(transport_, configured)), *connected_);
  if (own_models_.empty()) return models;
  return std::make_unique<ExtendedModels>(std::move(models), own_models_, options.model);
}

Result<void> ServerParts::OpenTools(Extensions& extensions) {
  own_tools_ = std::move(extensions.tools);
  added_servers_.emplace(AddedServers::Parts{.options = options_,
                                             .transport = transport_,
                                             .disk = disk_,
                                             .keys = keys_,
                                             .secrets = *learned_secrets_,
                                             .audit = own_->audit()});
  folders_ = TRY(WorkspaceFolders::Open({.options = options_,
                                         .transport = transport_,
                                         .disk = disk_,
                                         .own_tools = own_tools_,
                                         .keys = keys_,
                                         .make_models = [this](const Options& options) { return MakeModels(options); },
                                         .added_servers = &*added_servers_}));
  added_servers_->RunIn(*folders_);
  added_rules_.emplace(AddedRules::Parts{.options = options_,
                                         .disk = disk_,
                                         .keys = keys_,
                                         .folders = *folders_,
                                         .servers = *added_servers_,
                                         .audit = own_->audit()});
  return CheckRules(options_.tools.rules, *folders_->home()->tools().Current(), NamesOfServers(options_));
}

Result<ServerOptions> HttpOptionsFrom(const Options& options) {
  ServerOptions server;
  server.host = options.host == "localhost" ? "127.0.0.1" : options.host;
  server.port = options.port;
  for (const std::string& text : options.public_hosts) {
    server.public_hosts.push_back(TRY(ParsePublicHost(text)));
  }
  server.openapi = OpenApiDocument();
  server.page = PageAssets();
  server.limits.file_bytes = options.files.file_bytes;
  server.files_in_bucket = options.bucket.has_value();
  if (!options.token_file.empty()) {
    server.token = TRY(ReadToken(options.token_file));
  }
  return server;
}

std::string UrlOf(const std::string& host, int port) {
  const bool v6 = host.find(':') != std::string::npos;
  return "http://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace reprise
