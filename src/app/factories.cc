#include "app/factories.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string_view>
#include <utility>

#include "app/folders.h"
#include "app/keys.h"
#include "app/options.h"
#include "app/program_files.h"
#include "app/prompt_files.h"
#include "base/atomic_write.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/try.h"
#include "model/model_directory.h"
#include "model/openai/openai_audio.h"
#include "net/curl_transport.h"
#include "people/issuer_keys.h"
#include "remote/postgres/database.h"
#include "remote/postgres/postgres_tenant_stores.h"
#include "remote/postgres/schema.h"
#include "store/local_run_store.h"
#include "store/memory_interaction_store.h"
#include "store/unsaved.h"
#include "tools/documents/sandboxed_reader.h"
#include "tools/network/host_rules.h"

namespace reprise {
namespace {

// Paths that tools may never touch, even in the workspace.
Result<std::vector<std::string>> ProtectedPaths(const Options& options) {
  std::vector<std::string> paths = {options.data_dir, KeyFileOf(options), DefaultKeyFile()};
  // A configuration decides which tools ask, so no tool may write the one of the next start.
  paths.push_back(options.config_file.empty() ? "reprise.json" : options.config_file);
  paths.push_back(options.workspace + "/reprise.json");
  if (!options.folder_file.empty()) paths.push_back(options.folder_file);
  paths.push_back(PromptDirectoryOf(options));  // nor the prompt of the next turn
  if (!options.passphrase_file.empty()) paths.push_back(options.passphrase_file);
  if (!options.token_file.empty()) paths.push_back(options.token_file);
  if (options.auth.has_people()) paths.push_back(TokensFileOf(options));
  paths.push_back(ConfigDirectoryOf(options));    // nor the list of allowed files
  auto programs = TRY(FilesOfPrograms(options));  // nor programs that the server will run
  paths.insert(paths.end(), programs.begin(), programs.end());
  for (const std::string& folder : UnsavedFolders(options.data_dir)) paths.push_back(folder);
  for (std::string& folder : FoldersKeptOf(Resolved(options.data_dir).string())) paths.push_back(std::move(folder));
  for (std::string& path : paths) path = Resolved(path).string();
  return paths;
}

// Models and tools with the connections they use.
class ModelsApart final : public ModelDirectory {
 public:
  Result<void> Open(const Options& options) {
    return MakeModelDirectory(transport_, options).map([this](auto models) { models_ = std::move(models); });
  }
  Result<Resolved> Resolve(std::string_view name) const override { return models_->Resolve(name); }
  const std::string& default_model() const override { return models_->default_model(); }
  std::vector<Entry> List() const override { return models_->List(); }
  std::vector<LeftOutTool> LeftOutTools() const override { return models_->LeftOutTools(); }

 private:
  CurlTransport transport_;
  std::unique_ptr<ModelDirectory> models_;
};

class ToolsApart final : public ToolRegistry {
 public:
  Result<void> Open(const Options& options, std::vector<std::shared_ptr<Tool>> own) {
    return MakeToolCatalog(options, transport_, disk_, std::move(own)).map([this](auto tools) {
      tools_ = std::move(tools);
    });
  }
  std::shared_ptr<const ToolSet> Current() const override { return tools_->Current(); }
  std::shared_ptr<const ToolSet> With(const std::vector<std::shared_ptr<Tool>>& more) const override {
    return tools_->With(more);
  }
  std::vector<ToolServer> Servers() const override { return tools_->Servers(); }

 private:
  PosixFileSystem disk_;
  CurlTransport transport_;
  std::unique_ptr<ToolCatalog> tools_;
};

// "HOST:PORT" of each host in the authority of a URL, where commands must never get.
void AddEndpoints(std::string_view url, std::uint16_t usual_port, std::vector<std::string>& endpoints) {
  const std::size_t scheme = url.find("://");
  if (scheme == url.npos) return;
  std::string_view hosts = url.substr(scheme + 3);
  hosts = hosts.substr(0, hosts.find_first_of("/?#"));
  hosts.remove_prefix(hosts.rfind('@') == hosts.npos ? 0 : hosts.rfind('@') + 1);
  while (!hosts.empty()) {
    const std::string_view each = hosts.substr(0, hosts.find(','));
    hosts.remove_prefix(std::min(each.size() + 1, hosts.size()));
    if (const auto endpoint = ParseHostPort(each, usual_port)) endpoints.push_back(endpoint->str());
  }
}

std::vector<std::string> ClosedEndpoints(const Options& options) {
  constexpr std::uint16_t kPostgres = 5432, kRedis = 6379, kHttp = 80, kHttps = 443;
  std::vector<std::string> endpoints;
  AddEndpoints(options.store.url, kPostgres, endpoints);
  AddEndpoints(options.store.listen_url, kPostgres, endpoints);
  for (const std::string& url : options.redis.urls) AddEndpoints(url, kRedis, endpoints);
  if (options.bucket) {
    AddEndpoints(options.bucket->endpoint, options.bucket->endpoint.starts_with("https:") ? kHttps : kHttp, endpoints);
  }
  return endpoints;
}

}  // namespace

Result<ToolOptions> ToolOptionsOf(const Options& options, Transport& transport, FileSystem& disk,
                                  std::function<std::vector<std::string>()> readable_folders) {
  ToolOptions tools{.workspace_directory = Resolved(options.workspace).string(), .transport = transport};
  tools.allow = options.tools.allow;
  tools.deny = options.tools.deny;
  if (!options.has_workspace()) tools.deny.insert(tools.deny.end(), kWorkspaceTools.begin(), kWorkspaceTools.end());
  tools.require_approval = options.tools.require_approval;
  // Created now, because a missing folder cannot be closed to commands, which could then create it.
  std::error_code failed;
  if (const std::string folder = ConfigDirectoryOf(options); !std::filesystem::is_directory(folder, failed)) {
    if (auto made = CreateDirectories(disk, folder); !made) {
      LogWarning("the configuration folder cannot be made", {{"error", made.error().message}});
    }
  }
  tools.protected_paths = TRY(ProtectedPaths(options));
  tools.readable_folders = std::move(readable_folders);
  tools.shell.readable_paths = options.tools.sandbox_read;
  tools.shell.writable_paths = options.tools.sandbox_write;
  tools.shell.allow_unsandboxed = options.may_leave_sandbox();
  tools.shell.limits = options.tools.limits;
  tools.shell.network = {.allow = options.tools.network_allow,
                         .unasked = options.tools.network_unasked,
                         .deny = options.tools.network_deny,
                         .closed = ClosedEndpoints(options),
                         .ask = options.tools.network_ask};
  tools.shell.own_host = options.host;
  return tools;
}

Result<std::unique_ptr<ToolCatalog>> MakeToolCatalog(const Options& options, Transport& transport, FileSystem& disk,
                                                     std::vector<std::shared_ptr<Tool>> own,
                                                     std::function<std::vector<std::string>()> readable_folders) {
  auto catalog =
      std::make_unique<ToolCatalog>(TRY(ToolOptionsOf(options, transport, disk, std::move(readable_folders))));
  if (!own.empty()) {
    catalog->SetServer({.name = "program", .state = ToolServer::State::kReady}, std::move(own));
  }
  return catalog;
}

std::vector<std::string> NamesOfServers(const Options& options) {
  std::vector<std::string> names;
  for (const McpServerOptions& server : options.mcp_servers) names.push_back(server.name);
  return names;
}

ToolRules RulesOf(const Options& options) {
  if (options.tools.rules.empty()) return nullptr;
  return std::make_shared<const std::vector<ToolRule>>(options.tools.rules);
}

EngineOptions EngineOptionsOf(const Options& options, const std::string& path) {
  return {.max_rounds = options.max_rounds,
          .disconnect_grace = options.disconnect_grace,
          .tool_timeout = options.tools.timeout,
          .approval_mode = options.approval_mode,
          .rules = RulesOf(options),
          .approval_expiry = options.approval_expiry,
          .max_retries = options.max_retries,
          .max_tool_calls_per_minute = options.max_tool_calls_per_minute,
          .max_end_checks = options.max_end_checks,
          .titles_by_model = options.titles == "model",
          .budget = options.budget,
          .prices = options.prices,
          .parts = options.parts,
          .workspace = path,
          .output = options.tools.output,
          .jobs = options.tools.jobs};
}

std::unique_ptr<InteractionStore> MakeMemoryStore() { return std::make_unique<MemoryInteractionStore>(); }

std::unique_ptr<RunStore> MakeLocalRuns(InteractionStore& store) { return std::make_unique<LocalRunStore>(store); }

Result<std::unique_ptr<ModelDirectory>> MakeModels(const Options& options) {
  auto models = std::make_unique<ModelsApart>();
  TRY(models->Open(options));
  return models;
}

Result<std::unique_ptr<ToolRegistry>> MakeTools(const Options& options, std::vector<std::shared_ptr<Tool>> own) {
  auto tools = std::make_unique<ToolsApart>();
  TRY(tools->Open(options, std::move(own)));
  return tools;
}

namespace {

// The configured facts of a provider's models, by the provider's own names.
std::map<std::string, ModelFacts, std::less<>> FactsOf(const ProviderOptions& provider, const Options& options) {
  std::map<std::string, ModelFacts, std::less<>> own;
  const std::string prefix = provider.name + "/";
  for (const auto& [name, facts] : options.models) {
    if (name.starts_with(prefix)) own.emplace(name.substr(prefix.size()), facts);
  }
  return own;
}

// The models that GET /models names without asking the provider: the configured ones and the default model.
std::vector<std::string> ModelsOf(const ProviderOptions& provider, const Options& options) {
  std::set<std::string> names;
  for (const auto& [name, facts] : FactsOf(provider, options)) names.insert(name);
  const std::string prefix = provider.name + "/";
  if (options.model.starts_with(prefix)) names.insert(options.model.substr(prefix.size()));
  const std::string usual = UsualModel(provider);
  if (names.empty() && usual.starts_with(prefix)) names.insert(usual.substr(prefix.size()));
  return {names.begin(), names.end()};
}

// A request to a well-known provider without a key would only tell it about this server.
bool ListsModels(const ProviderOptions& provider) { return !provider.api_key.empty() || !WantsKey(provider); }

}  // namespace

bool WantsKey(const ProviderOptions& provider) {
  return provider.base_url.starts_with("https://api.openai.com") ||
         provider.base_url.starts_with("https://api.anthropic.com");
}

Result<std::unique_ptr<ModelDirectory>> MakeModelDirectory(Transport& transport, const Options& options) {
  std::vector<ProviderConfig> providers;
  for (const ProviderOptions& provider : options.providers) {
    providers.push_back({.name = provider.name,
                         .type = provider.type,
                         .base_url = provider.base_url,
                         .api_key = provider.api_key,
                         .idle_timeout = options.provider_idle_timeout,
                         .models = ModelsOf(provider, options),
                         .lists_models = ListsModels(provider),
                         .voice = options.audio.voice,
                         .additions = {.headers = provider.headers, .query = provider.query},
                         .web_search = provider.web_search,
                         .facts = FactsOf(provider, options)});
  }
  // With kApproveAll, the offline model does not wait for people either.
  const bool asks_people = options.approval_mode != ApprovalMode::kApproveAll;
  providers.push_back({.name = "offline", .type = "offline", .asks_people = asks_people});
  return ConfiguredModelDirectory::Create(transport, std::move(providers), options.model);
}

std::unique_ptr<SandboxedReader> MakeDocumentReader(const Options& options) {
  // Skips folders where an agent could have put the program.
  const char* const path = std::getenv("PATH");
  const std::string workspace = options.has_workspace() ? Resolved(options.workspace).string() : "";
  return std::make_unique<SandboxedReader>(SandboxedReader::Options{
      .timeout = options.document_timeout, .search_path = SearchPathOutside(path == nullptr ? "" : path, workspace)});
}

Result<std::unique_ptr<Audio>> MakeAudio(Transport& transport, const Options& options) {
  OpenAiAudioOptions audio{.transcription_model = options.audio.transcription,
                           .speech_model = options.audio.speech,
                           .talk_model = options.audio.talk,
                           .voice = options.audio.voice};
  for (const ProviderOptions& provider : options.providers) {
    if (provider.type == "anthropic") continue;
    audio.providers.emplace(provider.name,
                            OpenAiOptions{.base_url = provider.base_url,
                                          .api_key = provider.api_key,
                                          .provider = provider.name,
                                          .idle_timeout = options.provider_idle_timeout,
                                          .additions = {.headers = provider.headers, .query = provider.query}});
  }
  for (const auto& [setting, model] :
       {std::pair<std::string, std::string>("transcription", options.audio.transcription),
        {"speech", options.audio.speech}}) {
    if (model.empty() || audio.providers.contains(model.substr(0, model.find('/')))) continue;
    return Fail(Reason::kInvalidConfig,
                "key \"audio." + setting + "\": there is no provider of the type openai for " + model);
  }
  const auto talks = std::ranges::find(options.providers, options.audio.talk.substr(0, options.audio.talk.find('/')),
                                       &ProviderOptions::name);
  if (!options.audio.talk.empty() && (talks == options.providers.end() || talks->type != "openai_realtime")) {
    return Fail(Reason::kInvalidConfig,
                "key \"audio.talk\": there is no provider of the type openai_realtime for " + options.audio.talk);
  }
  return std::make_unique<OpenAiAudio>(transport, std::move(audio));
}

namespace {

constexpr std::chrono::milliseconds kFetchTimeout{5'000};

IssuerOptions IssuerOf(const AuthOptions& auth) {
  return {.issuer = auth.issuer,
          .audience = auth.audience,
          .org_claim = auth.org_claim,
          .roles_claim = auth.roles_claim,
          .admin_role = auth.admin_role};
}

}  // namespace

std::string TokensFileOf(const Options& options) {
  return options.auth.tokens_file.empty() ? ConfigDirectoryOf(options) + "/tokens.json" : options.auth.tokens_file;
}

std::string TokenUsesFileOf(const Options& options) { return options.data_dir + "/.token_uses"; }

namespace {

// With its own connection to the database.
class TokensApart final : public ApiTokenStore {
 public:
  explicit TokensApart(std::unique_ptr<Database> database) : database_(std::move(database)), tokens_(*database_) {}
  Version Look() const override { return tokens_.Look(); }
  bool is_exact() const override { return tokens_.is_exact(); }
  Result<Content> Read() override { return tokens_.Read(); }
  Result<Made> Add(Principal principal, std::string name, std::optional<Timestamp> expires_at) override {
    return tokens_.Add(std::move(principal), std::move(name), expires_at);
  }
  Result<ApiToken> Revoke(std::string_view id) override { return tokens_.Revoke(id); }
  TokenUses ReadUses() override { return tokens_.ReadUses(); }
  Result<void> WriteUses(const TokenUses& uses) override { return tokens_.WriteUses(uses); }

 private:
  const std::unique_ptr<Database> database_;
  PostgresApiTokens tokens_;
};

}  // namespace

Result<std::shared_ptr<ApiTokenStore>> OpenTokens(const Options& options) {
  if (options.store.type == StoreOptions::Type::kFiles) {
    return std::make_shared<ApiTokenFile>(TokensFileOf(options), TokenUsesFileOf(options));
  }
  auto database = TRY(Database::Open({.url = options.store.url}));
  TRY(CheckSchema(*database));
  return std::make_shared<TokensApart>(std::move(database));
}

std::shared_ptr<Authenticator> MakeAuthenticator(const Options& options, Transport& transport,
                                                 std::shared_ptr<ApiTokenStore> tokens) {
  if (!options.auth.has_people()) return nullptr;
  Authenticator::Options people{.tokens = std::move(tokens)};
  if (options.auth.type == AuthOptions::Type::kOidc) {
    people.issuer = IssuerOf(options.auth);
    people.fetch_keys = [&transport, issuer = options.auth.issuer](std::stop_token stop) {
      return FetchIssuerKeys(transport, issuer, kFetchTimeout, std::move(stop));
    };
  }
  return std::make_shared<Authenticator>(std::move(people));
}

}  // namespace reprise
