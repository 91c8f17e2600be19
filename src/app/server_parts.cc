#include "app/server_parts.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "app/chat_keys.h"
#include "app/embedded.h"
#include "app/factories.h"
#include "app/kept_folders.h"
#include "app/key_access.h"
#include "app/mcp_folder.h"
#include "app/model_catalog.h"
#include "app/page_assets.h"
#include "app/program_files.h"
#include "app/prompt_folder.h"
#include "app/secrets.h"
#include "base/atomic_write.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/private_file.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/folder_probe.h"
#include "store/grant_file.h"
#include "store/local_run_store.h"
#include "store/sealed_file_store.h"
#include "store/unsaved.h"
#include "tools/form.h"
#include "tools/tool_catalog.h"

namespace reprise {
namespace {

std::string ProviderOf(std::string_view model) { return std::string(model.substr(0, model.find('/'))); }

// The models of a configuration, and those of the program that embeds the server.
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

 private:
  const std::unique_ptr<ModelDirectory> configured_;
  const std::map<std::string, std::shared_ptr<ModelClient>> own_;
  const std::string default_model_;
};

}  // namespace

Result<std::unique_ptr<ServerParts>> ServerParts::Assemble(const Options& options, Extensions extensions,
                                                           bool new_key) {
  std::error_code failed;
  if (!std::filesystem::is_directory(options.workspace, failed)) {
    return Fail(ErrorCode::kInvalidArgument, "the workspace " + options.workspace + " is not a folder");
  }
  std::unique_ptr<ServerParts> parts(new ServerParts);
  if (auto opened = parts->OpenStores(options, new_key); !opened) return Fail(opened.error());
  if (auto opened = parts->OpenModels(options, extensions); !opened) return Fail(opened.error());
  if (auto opened = parts->OpenTools(options, extensions); !opened) return Fail(opened.error());

  if (options.budget.max_cost_per_chat > 0 && !options.prices.contains(options.model)) {
    LogWarning("max_cost_per_chat does not hold for a model without a price", {{"model", options.model}});
  }
  parts->StartMcpServers(options);  // before the engine asks for tools of interrupted runs

  parts->audit_ = std::make_unique<AuditFile>(options.data_dir, parts->keys_, parts->disk_);
  if (const auto end = parts->audit_->CheckEnd(); !end) {
    LogError("the audit log is not as it was left", {{"code", end.error().reason}, {"error", end.error().message}});
  }
  parts->hooks_ = std::make_unique<HookCommands>(options.hooks, Resolved(options.workspace).string());

  Engine::Parts engine_parts{.store = *parts->store_,
                             .runs = *parts->runs_,
                             .fallback_stores = {},
                             .models = *parts->models_,
                             .tools = *parts->tools_};
  engine_parts.files = parts->files_;
  engine_parts.grants = parts->grants_.get();
  if (parts->postgres_) engine_parts.questions = &parts->postgres_->questions();
  if (options.system_prompt) {
    engine_parts.prompt = PromptFolder(options, Resolved(options.workspace).string());
  }
  engine_parts.audit = parts->audit_.get();
  engine_parts.hooks = parts->hooks_.get();
  engine_parts.secrets = SecretsOf(options, environ);
  engine_parts.guardrails = options.guardrails;
  engine_parts.check_form = CheckForm;
  for (const auto& fallback : parts->fallback_stores_) engine_parts.fallback_stores.push_back(fallback.get());
  // A disk that hangs is given up; a database that is away comes back.
  const auto save_timeout = parts->postgres_ ? std::chrono::milliseconds(0) : EngineOptions{}.save_timeout;
  parts->engine_ = std::make_unique<Engine>(
      std::move(engine_parts), EngineOptions{.max_rounds = options.max_rounds,
                                             .disconnect_grace = options.disconnect_grace,
                                             .tool_timeout = options.tools.timeout,
                                             .save_timeout = save_timeout,
                                             .approval_mode = options.approval_mode,
                                             .approval_expiry = options.approval_expiry,
                                             .max_retries = options.max_retries,
                                             .max_tool_calls_per_minute = options.max_tool_calls_per_minute,
                                             .budget = options.budget,
                                             .prices = options.prices,
                                             .workspace = Resolved(options.workspace).string()});
  const auto recovered = parts->engine_->Recover();
  if (!recovered) return Fail(recovered.error());
  if (recovered->waiting + recovered->failed + recovered->left > 0) {
    LogInfo("interrupted interactions taken up",
            {{"waiting", recovered->waiting}, {"failed", recovered->failed}, {"left", recovered->left}});
  }
  return parts;
}

Result<void> ServerParts::OpenStores(const Options& options, bool new_key) {
  readiness_.emplace([this, folder = options.data_dir]() -> Result<void> {
    if (auto probed = ProbeFolder(disk_, folder); !probed) return probed;
    return postgres_ ? postgres_->CheckReady() : Result<void>();
  });
  auto keys = KeysForWriting(options, options.data_dir, new_key ? FolderUse::kGiveUp : FolderUse::kAdd);
  if (!keys) return Fail(keys.error());
  keys_ = *std::move(keys);
  if (keys_) KeepInMemory(*keys_);
  if (keys_ && OthersMayReplace(KeyFileOf(options))) {
    LogWarning("other users may replace the key file: its folder is not for its owner alone", {});
  }
  return options.store.type == StoreOptions::Type::kPostgres ? OpenDatabase(options) : OpenFolder(options);
}

// The data folder keeps what concerns this server alone: its audit log, and which tools of others are approved.
Result<void> ServerParts::OpenDatabase(const Options& options) {
  if (auto made = CreateDirectories(disk_, options.data_dir); !made) return Fail(made.error());
  auto opened = PostgresParts::Open(
      {.url = options.store.url, .keys = keys_, .files = options.files, .version = std::string(Version())});
  if (!opened) return Fail(opened.error());
  postgres_ = *std::move(opened);
  store_ = &postgres_->store();
  runs_ = &postgres_->runs();
  files_ = &postgres_->files();
  return {};
}

Result<void> ServerParts::OpenFolder(const Options& options) {
  auto store = FileInteractionStore::Open({.root = options.data_dir, .keys = keys_, .file_system = disk_});
  if (!store) return Fail(store.error());
  folder_ = *std::move(store);
  folder_runs_ = std::make_unique<LocalRunStore>(*folder_);
  store_ = folder_.get();
  runs_ = folder_runs_.get();
  NoteKeysOf(options.data_dir, keys_.get());
  grants_ = std::make_unique<FileGrantStore>(disk_, options.data_dir, keys_);
  static_cast<void>(grants_->List());  // what cannot be read is named in the log now
  folder_files_ = std::make_unique<SealedFileStore>(
      SealedFileStore::Options{.root = options.data_dir, .keys = keys_, .file_system = disk_, .limits = options.files});
  files_ = folder_files_.get();

  for (const std::string& folder : UnsavedFolders(options.data_dir)) {
    const auto brought = BringHome(folder, keys_, disk_, *folder_);
    // A folder that cannot be read is no reason not to serve: nothing in it is lost by trying again at the next start.
    if (!brought) {
      LogWarning("unsaved interactions could not be brought home", {{"error", brought.error().message}});
    } else if (brought->moved + brought->left > 0) {
      LogInfo("unsaved interactions brought home", {{"moved", brought->moved}, {"left", brought->left}});
    }
    fallback_stores_.push_back(OpenUnsavedStore(folder, keys_, disk_));
  }
  return {};
}

Result<void> ServerParts::OpenModels(const Options& options, Extensions& extensions) {
  Options configured = options;
  if (extensions.models.contains(ProviderOf(options.model))) configured.model = "offline";
  auto models = MakeModelDirectory(transport_, configured);
  if (!models) return Fail(models.error());
  models_ = *std::move(models);
  if (extensions.models.empty()) return {};
  models_ = std::make_unique<ExtendedModels>(std::move(models_), std::move(extensions.models), options.model);
  return {};
}

Result<void> ServerParts::OpenTools(const Options& options, Extensions& extensions) {
  return MakeToolCatalog(options, transport_, disk_, std::move(extensions.tools)).map([this](auto catalog) {
    tools_ = std::move(catalog);
  });
}

void ServerParts::StartMcpServers(const Options& options) {
  if (options.mcp_servers.empty()) return;
  McpServers::Parts parts{.transport = transport_,
                          .file_system = disk_,
                          .approvals_file = ApprovedToolsFile(options.data_dir),
                          .keys = keys_,
                          .workspace = Resolved(options.workspace).string(),
                          .folders = McpFolder(options),
                          .client_version = std::string(Version()),
                          .on_change = {}};
  parts.on_change = [this](ToolServer server, std::vector<std::shared_ptr<Tool>> tools, UnlistedTool unlisted) {
    tools_->SetServer(std::move(server), std::move(tools), std::move(unlisted));
  };
  mcp_servers_ = std::make_unique<McpServers>(options.mcp_servers, std::move(parts));
  mcp_servers_->Start();
}

Result<ServerOptions> HttpOptionsFrom(const Options& options) {
  ServerOptions server;
  server.host = options.host == "localhost" ? "127.0.0.1" : options.host;
  server.port = options.port;
  for (const std::string& text : options.public_hosts) {
    auto host = ParsePublicHost(text);
    if (!host) return Fail(std::move(host.error()));
    server.public_hosts.push_back(*std::move(host));
  }
  server.openapi = OpenApiDocument();
  server.page = PageAssets();
  server.limits.file_bytes = options.files.file_bytes;
  if (!options.token_file.empty()) {
    auto token = ReadToken(options.token_file);
    if (!token) return Fail(token.error());
    server.token = *std::move(token);
  }
  return server;
}

std::string UrlOf(const std::string& host, int port) {
  const bool v6 = host.find(':') != std::string::npos;
  return "http://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace reprise
