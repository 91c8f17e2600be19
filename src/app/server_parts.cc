#include "app/server_parts.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "app/chat_keys.h"
#include "app/embedded.h"
#include "app/factories.h"
#include "app/key_access.h"
#include "app/mcp_folder.h"
#include "app/model_catalog.h"
#include "app/page_assets.h"
#include "app/people.h"
#include "app/program_files.h"
#include "app/prompt_folder.h"
#include "app/tenant_folder.h"
#include "base/atomic_write.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/private_file.h"
#include "base/try.h"
#include "store/file_names.h"
#include "store/folder_probe.h"
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
  std::unique_ptr<ServerParts> parts(new ServerParts(options));
  TRY(parts->OpenStores(new_key));
  TRY(parts->OpenModels(extensions));
  TRY(parts->OpenTools(extensions));

  if (options.budget.max_cost_per_chat > 0 && !options.prices.contains(options.model)) {
    LogWarning("max_cost_per_chat does not hold for a model without a price", {{"model", options.model}});
  }
  if (!options.has_workspace()) LogInfo("no workspace: tools for files and commands are off, and MCP servers that are run");
  parts->StartMcpServers();  // before the engine asks for tools of interrupted runs
  parts->hooks_ = std::make_unique<HookCommands>(options.hooks, Resolved(options.workspace).string());
  TRY(parts->own_->Start(parts->CommonWith(*parts->tools_)));
  return parts;
}

Result<void> ServerParts::OpenStores(bool new_key) {
  readiness_.emplace([this] { return ProbeFolder(disk_, options_.data_dir); });
  auto keys = KeysForWriting(options_, options_.data_dir, new_key ? FolderUse::kGiveUp : FolderUse::kAdd);
  if (!keys) return Fail(keys.error());
  keys_ = *std::move(keys);
  if (keys_) KeepInMemory(*keys_);
  if (keys_ && OthersMayReplace(KeyFileOf(options_))) {
    LogWarning("other users may replace the key file: its folder is not for its owner alone", {});
  }
  own_ = TRY(TenantParts::Open(options_, options_.data_dir, keys_, disk_));
  return {};
}

TenantParts::Common ServerParts::CommonWith(const ToolRegistry& tools) {
  const std::string workspace = options_.has_workspace() ? Resolved(options_.workspace).string() : "";
  return {.models = *models_,
          .tools = tools,
          .hooks = hooks_.get(),
          .prompt = options_.system_prompt ? PromptSource(PromptFolder(options_, workspace)) : PromptSource(),
          .workspace = workspace};
}

void ServerParts::AddPeople(ServerOptions& server) {
  server.people = MakeAuthenticator(options_, transport_);
  if (!server.people) return;
  server.tenants = {.open = [this](const Principal& principal) { return OpenTenant(principal); },
                    .list = [this] { return ListTenants(options_.data_dir, disk_); }};
}

Result<std::shared_ptr<Engine>> ServerParts::OpenTenant(const Principal& principal) {
  std::string folder = TenantFolder(options_.data_dir, principal);
  TRY(MarkTenantFolder(folder, principal, disk_));
  auto keys = keys_ ? std::make_shared<const KeySet>(keys_->BoundTo(TenantOf(principal))) : nullptr;
  std::shared_ptr<TenantParts> parts = TRY(TenantParts::Open(options_, std::move(folder), std::move(keys), disk_));
  TRY(parts->Start(CommonWith(*tenant_tools_)));
  return std::shared_ptr<Engine>(parts, &parts->engine());
}

Result<void> ServerParts::OpenModels(Extensions& extensions) {
  Options configured = options_;
  if (extensions.models.contains(ProviderOf(options_.model))) configured.model = "offline";
  auto models = MakeModelDirectory(transport_, configured);
  if (!models) return Fail(models.error());
  models_ = *std::move(models);
  if (extensions.models.empty()) return {};
  models_ = std::make_unique<ExtendedModels>(std::move(models_), std::move(extensions.models), options_.model);
  return {};
}

Result<void> ServerParts::OpenTools(Extensions& extensions) {
  tools_ = TRY(MakeToolCatalog(options_, transport_, disk_, std::move(extensions.tools)));
  tenant_tools_ = std::make_unique<TenantTools>(*tools_);
  return {};
}

void ServerParts::StartMcpServers() {
  std::vector<McpServerOptions> servers;
  for (const McpServerOptions& server : options_.mcp_servers) {
    if (options_.has_workspace() || server.command.empty()) {
      servers.push_back(server);
    } else {
      tools_->SetServer({.name = server.name,
                         .state = ToolServer::State::kFailed,
                         .message = "off: without a workspace this server runs no programs (workspace_mode)"},
                        {});
    }
  }
  if (servers.empty()) return;
  McpServers::Parts parts{.transport = transport_,
                          .file_system = disk_,
                          .approvals_file = ApprovedToolsFile(options_.data_dir),
                          .keys = keys_,
                          .workspace = Resolved(options_.workspace).string(),
                          .folders = McpFolder(options_),
                          .client_version = std::string(Version()),
                          .on_change = {}};
  parts.on_change = [this](ToolServer server, std::vector<std::shared_ptr<Tool>> tools, UnlistedTool unlisted) {
    tools_->SetServer(std::move(server), std::move(tools), std::move(unlisted));
  };
  mcp_servers_ = std::make_unique<McpServers>(std::move(servers), std::move(parts));
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
