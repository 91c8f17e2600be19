#include "app/factories.h"

#include <filesystem>
#include <string>
#include <utility>

#include "app/kept_folders.h"
#include "app/key_access.h"
#include "app/model_catalog.h"
#include "app/people.h"
#include "app/program_files.h"
#include "app/prompt_folder.h"
#include "base/atomic_write.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/try.h"
#include "net/curl_transport.h"
#include "store/local_run_store.h"
#include "store/memory_interaction_store.h"
#include "store/unsaved.h"
#include "tools/tool_catalog.h"

namespace reprise {
namespace {

// Paths that tools may never touch, even in the workspace.
Result<std::vector<std::string>> ProtectedPaths(const Options& options) {
  std::vector<std::string> paths = {options.data_dir, KeyFileOf(options), DefaultKeyFile()};
  // A configuration decides which tools ask, so no tool may write the one of the next start.
  paths.push_back(options.config_file.empty() ? "reprise.json" : options.config_file);
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

}  // namespace

Result<std::unique_ptr<ToolCatalog>> MakeToolCatalog(const Options& options, Transport& transport, FileSystem& disk,
                                                     std::vector<std::shared_ptr<Tool>> own,
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
  tools.shell.limits = options.tools.limits;
  auto catalog = std::make_unique<ToolCatalog>(std::move(tools));
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

}  // namespace reprise
