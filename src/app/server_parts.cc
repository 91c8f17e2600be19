#include "app/server_parts.h"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "app/chat_keys.h"
#include "app/embedded.h"
#include "app/kept_folders.h"
#include "app/key_access.h"
#include "app/mcp_folder.h"
#include "app/model_catalog.h"
#include "app/program_files.h"
#include "app/prompt_folder.h"
#include "app/secrets.h"
#include "base/atomic_write.h"
#include "base/logging.h"
#include "base/path.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/folder_probe.h"
#include "store/grant_file.h"
#include "store/sealed_file_store.h"
#include "store/unsaved.h"
#include "tools/form.h"
#include "tools/tool_catalog.h"

namespace reprise {
namespace {

// What the tools may never touch, although it may lie in the workspace.
Result<std::vector<std::string>> ProtectedPaths(const Options& options) {
  std::vector<std::string> paths = {options.data_dir, KeyFileOf(options), DefaultKeyFile()};
  // A configuration decides which tools ask; a tool must not be able to write the one that the next start would read.
  paths.push_back(options.config_file.empty() ? "reprise.json" : options.config_file);
  paths.push_back(PromptDirectoryOf(options));  // likewise for what the next turn is told
  if (!options.passphrase_file.empty()) paths.push_back(options.passphrase_file);
  if (!options.token_file.empty()) paths.push_back(options.token_file);
  paths.push_back(ConfigDirectoryOf(options));  // nor the list of what is allowed
  auto programs = FilesOfPrograms(options);     // nor what the server is going to run
  if (!programs) return Fail(programs.error());
  paths.insert(paths.end(), programs->begin(), programs->end());
  for (const std::string& folder : UnsavedFolders(options.data_dir)) paths.push_back(folder);
  for (std::string& folder : FoldersKeptOf(Resolved(options.data_dir).string())) paths.push_back(std::move(folder));
  for (std::string& path : paths) path = Resolved(path).string();
  return paths;
}

}  // namespace

Result<std::unique_ptr<ServerParts>> ServerParts::Assemble(const Options& options, bool new_key) {
  std::error_code failed;
  if (!std::filesystem::is_directory(options.workspace, failed)) {
    return Fail(ErrorCode::kInvalidArgument, "the workspace " + options.workspace + " is not a folder");
  }
  std::unique_ptr<ServerParts> parts(new ServerParts);
  if (auto opened = parts->OpenStores(options, new_key); !opened) return Fail(opened.error());
  auto models = MakeModelDirectory(parts->transport_, options);
  if (!models) return Fail(models.error());
  parts->models_ = *std::move(models);
  if (auto opened = parts->OpenTools(options); !opened) return Fail(opened.error());

  if (options.budget.max_cost_per_chat > 0 && !options.prices.contains(options.model)) {
    LogWarning("max_cost_per_chat does not hold for a model without a price", {{"model", options.model}});
  }
  parts->StartMcpServers(options);  // before the engine asks for tools of interrupted runs

  parts->audit_ = std::make_unique<AuditFile>(options.data_dir, parts->keys_, parts->disk_);
  if (const auto end = parts->audit_->CheckEnd(); !end) {
    LogError("the audit log is not as it was left", {{"code", end.error().reason}, {"error", end.error().message}});
  }
  parts->hooks_ = std::make_unique<HookCommands>(options.hooks, Resolved(options.workspace).string());

  Engine::Parts engine_parts{
      .store = *parts->store_, .fallback_stores = {}, .models = *parts->models_, .tools = *parts->tools_};
  engine_parts.files = parts->files_.get();
  engine_parts.grants = parts->grants_.get();
  if (options.system_prompt) {
    engine_parts.prompt = PromptFolder(options, Resolved(options.workspace).string());
  }
  engine_parts.audit = parts->audit_.get();
  engine_parts.hooks = parts->hooks_.get();
  engine_parts.secrets = SecretsOf(options, environ);
  engine_parts.guardrails = options.guardrails;
  engine_parts.check_form = CheckForm;
  for (const auto& fallback : parts->fallback_stores_) engine_parts.fallback_stores.push_back(fallback.get());
  parts->engine_ = std::make_unique<Engine>(
      std::move(engine_parts), EngineOptions{.max_rounds = options.max_rounds,
                                             .disconnect_grace = options.disconnect_grace,
                                             .tool_timeout = options.tools.timeout,
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
  readiness_.emplace([this, folder = options.data_dir] { return ProbeFolder(disk_, folder); });
  auto keys = KeysForWriting(options, options.data_dir, new_key ? FolderUse::kGiveUp : FolderUse::kAdd);
  if (!keys) return Fail(keys.error());
  keys_ = *std::move(keys);
  if (keys_) KeepInMemory(*keys_);
  if (keys_ && OthersMayReplace(KeyFileOf(options))) {
    LogWarning("other users may replace the key file: its folder is not for its owner alone", {});
  }
  auto store = FileInteractionStore::Open({.root = options.data_dir, .keys = keys_, .file_system = disk_});
  if (!store) return Fail(store.error());
  store_ = *std::move(store);
  NoteKeysOf(options.data_dir, keys_.get());
  grants_ = std::make_unique<FileGrantStore>(disk_, options.data_dir, keys_);
  static_cast<void>(grants_->List());  // what cannot be read is named in the log now
  files_ = std::make_unique<SealedFileStore>(
      SealedFileStore::Options{.root = options.data_dir, .keys = keys_, .file_system = disk_, .limits = options.files});

  for (const std::string& folder : UnsavedFolders(options.data_dir)) {
    const auto brought = BringHome(folder, keys_, disk_, *store_);
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

Result<void> ServerParts::OpenTools(const Options& options) {
  ToolOptions tools{.workspace_directory = Resolved(options.workspace).string(), .transport = transport_};
  tools.allow = options.tools.allow;
  tools.deny = options.tools.deny;
  tools.require_approval = options.tools.require_approval;
  // What is not there cannot be closed to commands, and they would be the ones to make it.
  std::error_code failed;
  if (const std::string folder = ConfigDirectoryOf(options); !std::filesystem::is_directory(folder, failed)) {
    if (auto made = CreateDirectories(disk_, folder); !made) {
      LogWarning("the configuration folder cannot be made", {{"error", made.error().message}});
    }
  }
  auto closed = ProtectedPaths(options);
  if (!closed) return Fail(closed.error());
  tools.protected_paths = *std::move(closed);
  tools.shell.readable_paths = options.tools.sandbox_read;
  tools.shell.writable_paths = options.tools.sandbox_write;
  tools.shell.limits = options.tools.limits;
  tools_ = std::make_unique<ToolCatalog>(std::move(tools));
  return {};
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

}  // namespace reprise
