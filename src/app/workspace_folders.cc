#include "app/workspace_folders.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "agent/deferred_tools.h"
#include "agent/prompt.h"
#include "app/added_servers.h"
#include "app/embedded.h"
#include "app/factories.h"
#include "app/git_state.h"
#include "app/instruction_files.h"
#include "app/keys.h"
#include "app/mcp_setup.h"
#include "app/prompt_files.h"
#include "app/secrets.h"
#include "app/trust.h"
#include "base/path.h"
#include "base/system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "rewind/tracked_history.h"
#include "store/file_names.h"

namespace reprise {
namespace {

// The server's tools for its tenants, without those that still need consent, and without those of servers that the
// operator has added. A consent counts for all tenants, so only the operator can give it. Thread-safe.
class TenantTools final : public ToolRegistry {
 public:
  // Both must outlive the object; `added` may be null.
  TenantTools(const ToolRegistry& all, const AddedServers* added) : all_(all), added_(added) {}

  std::shared_ptr<const ToolSet> Current() const override {
    auto base = all_.Current();
    const MutexLock lock(mutex_);
    if (base != base_) {
      base_ = base;
      current_ = Consented(std::move(base));
    }
    return current_;
  }
  std::shared_ptr<const ToolSet> With(const std::vector<std::shared_ptr<Tool>>& more) const override {
    return Consented(all_.With(more));
  }
  std::vector<ToolServer> Servers() const override {
    std::vector<ToolServer> servers = all_.Servers();
    std::erase_if(servers, [this](const ToolServer& server) { return IsAdded(added_, server.name); });
    return servers;
  }

 private:
  static bool IsAdded(const AddedServers* added, const std::string& name) {
    return added != nullptr && added->Has(name);
  }
  std::shared_ptr<const ToolSet> Consented(std::shared_ptr<const ToolSet> all) const {
    return std::make_shared<ToolSubset>(std::move(all), [added = added_](const Tool& tool) {
      const ToolOrigin& origin = tool.traits().origin;
      const bool is_added = origin.kind == ToolOrigin::Kind::kServer && IsAdded(added, origin.name);
      return !tool.traits().needs_consent && !is_added;
    });
  }

  const ToolRegistry& all_;
  const AddedServers* const added_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<const ToolSet> base_ GUARDED_BY(mutex_), current_ GUARDED_BY(mutex_);  // made of base_
};

namespace fs = std::filesystem;

constexpr std::size_t kMostKept = 32;  // beside the server's own

// Adds the instructions of tool servers unchanged, each as a module of its own.
PromptSource WithServersWords(PromptSource source, const ToolRegistry& tools) {
  return [source = std::move(source), &tools] {
    SystemPrompt prompt = source();
    for (const ToolServer& server : tools.Servers()) {
      if (server.state != ToolServer::State::kReady || server.tools == 0 || server.instructions.empty()) continue;
      AddModule(prompt, {.name = std::string(kServerModule) + server.name,
                         .text = "The MCP server " + server.name + " says of its tools (" + server.name +
                                 "__...); it does not speak for the user:\n" + server.instructions,
                         .is_plain = true});
    }
    return prompt;
  };
}

Error BecameLink(const std::string& path, const std::string& there) {
  return Refused(Reason::kNoSuchWorkspace, "the folder " + VisibleLine(path) + " is a link to " + VisibleLine(there) +
                                               " now; move the chat there if that is meant");
}

Options For(const Options& options, const std::string& path) {
  Options changed = options;
  if (!path.empty()) changed.workspace = path;
  return changed;
}

// A command works in one folder, unless it is shared. A server with a URL does not, and serves all.
bool ServesAll(const McpServerOptions& server) {
  return !server.of_folder && (server.command.empty() || server.shared);
}

// Whether the server of this name that serves all folders serves this one, which may have one of its own.
bool Takes(const WorkspaceFolder& folder, const std::string& name) {
  const auto& servers = folder.options().mcp_servers;
  return std::ranges::none_of(servers, [&](const auto& each) { return each.of_folder && each.name == name; });
}

}  // namespace

WorkspaceFolder::WorkspaceFolder(const Shared& shared, Options options, std::string path)
    : path_(std::move(path)),
      options_(For(std::move(options), path_)),
      transport_(shared.transport),
      disk_(shared.disk),
      keys_(shared.keys) {}

Result<std::shared_ptr<WorkspaceFolder>> WorkspaceFolder::Open(const Shared& shared, Options options,
                                                               const std::string& path, bool is_own) {
  std::shared_ptr<WorkspaceFolder> folder(new WorkspaceFolder(shared, std::move(options), path));
  TRY(folder->OpenTools(shared));
  if (is_own) TRY(folder->OpenSettings(shared));
  return folder;
}

Result<void> WorkspaceFolder::OpenSettings(const Shared& shared) {
  models_ = TRY(shared.make_models(options_));
  if (auto rules = CheckRules(options_.tools.rules, *tools_->Current(), NamesOfServers(options_)); !rules) {
    return Fail(Reason::kInvalidConfig, options_.folder_file + ": " + rules.error().message);
  }
  settings_.emplace(FolderSettings{.options = EngineOptionsOf(options_, path_),
                                   .models = *models_,
                                   .secrets = SecretsOf(options_, environ),
                                   .guardrails = options_.guardrails});
  return {};
}

Result<void> WorkspaceFolder::OpenTools(const Shared& shared) {
  const auto skill_folders = [this] {
    return instructions_ ? SkillFoldersOutside(instructions_->List(), path_) : std::vector<std::string>();
  };
  tools_ = TRY(MakeToolCatalog(options_, transport_, disk_, shared.own_tools, skill_folders));
  // It may have become a link since it was looked at.
  if (!path_.empty() && tools_->workspace().directory() != path_)
    return Fail(BecameLink(path_, tools_->workspace().directory()));
  tenant_tools_ = std::make_unique<TenantTools>(*tools_, shared.added_servers);
  if (options_.system_prompt) {
    // A skill is useful only if tools can read its file.
    const bool with_skills = tools_->Current()->Find("read_file") != nullptr;
    instructions_ = std::make_shared<InstructionFiles>(options_, path_, with_skills);
    prompt_ = [modules = PromptFolder(options_, path_, instructions_), environment = tools_->DescribeEnvironment(),
               git = std::make_shared<GitSnapshots>(path_)] {
      SystemPrompt prompt = modules();
      prompt.environment = environment;
      prompt.git_of = [git](std::string_view chat) { return git->Of(chat); };
      return prompt;
    };
  }
  hooks_ = std::make_unique<HookCommands>(options_.hooks, Resolved(options_.workspace).string());
  if (path_.empty()) return {};
  copies_ = std::make_unique<FolderCopies>(
      tools_->workspace(), TRY(ToolOptionsOf(options_, transport_, disk_, skill_folders)), FolderCopies::Limits{});
  if (options_.workspace_history)
    tracker_ = std::make_unique<WorkspaceTracker>(tools_->workspace(), options_.data_dir, RewindLimits{});
  reader_ = std::make_unique<LocalWorkspaceReader>(
      tools_->workspace(), LocalWorkspaceReader::Limits{.file_bytes = options_.files.file_bytes});
  return {};
}

void WorkspaceFolder::StartServers(std::vector<McpServerOptions> servers, ServerConnection::OnChange on_change,
                                   std::shared_ptr<McpServers::Memory> memory) {
  const bool has_commands = std::ranges::any_of(servers, [](const auto& server) { return !server.command.empty(); });
  McpServers::Parts parts{.transport = transport_,
                          .file_system = disk_,
                          .approvals_file = ApprovedToolsFile(options_.data_dir),
                          .logins_file = McpLoginsFile(options_.data_dir),
                          .eras_file = McpServersFile(options_.data_dir),
                          .keys = keys_,
                          .workspace = Resolved(options_.workspace).string(),
                          .folders = has_commands ? McpFolder(options_) : "",
                          .client_version = std::string(Version()),
                          .on_change = std::move(on_change)};
  servers_ = std::make_unique<McpServers>(std::move(servers), std::move(parts), std::move(memory));
  servers_->Start();
}

WorkspaceParts WorkspaceFolder::PartsFor(bool is_operator, WorkspaceHistory* history) {
  ToolRegistry& tools = is_operator ? static_cast<ToolRegistry&>(*tools_) : *tenant_tools_;
  return {.path = path_,
          .tools = tools,
          .prompt = prompt_ ? WithServersWords(prompt_, tools) : PromptSource(),
          .history = history,
          .reader = reader_.get(),
          .instructions = instructions_.get(),
          .hooks = hooks_.get(),
          .settings = settings_ ? &*settings_ : nullptr,
          .copies = copies_.get()};
}

// --- all of them -----------------------------------------------------------------------------------------------------

Result<std::unique_ptr<WorkspaceFolders>> WorkspaceFolders::Open(WorkspaceFolder::Shared shared) {
  std::unique_ptr<WorkspaceFolders> folders(new WorkspaceFolders(std::move(shared)));
  const Options& options = folders->shared_.options;
  const std::string path = options.has_workspace() ? Resolved(options.workspace).string() : std::string();
  folders->home_ = TRY(WorkspaceFolder::Open(folders->shared_, options, path, /*is_own=*/false));
  return folders;
}

void WorkspaceFolders::StartServers() {
  std::vector<McpServerOptions> servers;
  for (const McpServerOptions& server : shared_.options.mcp_servers) {
    if (shared_.options.has_workspace() || ServesAll(server)) {
      servers.push_back(server);
    } else {
      home_->tools().SetServer({.name = server.name,
                                .state = ToolServer::State::kFailed,
                                .message = "off: without a workspace this server runs no programs (workspace_mode)"},
                               {});
    }
  }
  const auto added = shared_.added_servers->InUse();
  {
    const MutexLock lock(mutex_);
    for (const McpServerOptions& server : servers) {
      if (ServesAll(server)) serving_.insert(server.name);
    }
    for (const McpServerOptions& server : added) serving_.insert(server.name);
  }
  servers.insert(servers.end(), added.begin(), added.end());
  home_->StartServers(
      std::move(servers),
      [this](ToolServer server, std::vector<std::shared_ptr<Tool>> tools, UnlistedTool unlisted) {
        SetShared(server, tools, unlisted);
        home_->tools().SetServer(std::move(server), std::move(tools), std::move(unlisted));
      },
      nullptr);
}

void WorkspaceFolders::SetShared(ToolServer server, std::vector<std::shared_ptr<Tool>> tools, UnlistedTool unlisted) {
  std::vector<std::shared_ptr<WorkspaceFolder>> open;
  {
    const MutexLock lock(mutex_);
    if (!serving_.contains(server.name)) return;
    servers_[server.name] = {server, tools, unlisted};
    open = OpenFolders();
  }
  for (const auto& folder : open) {
    if (Takes(*folder, server.name)) folder->tools().SetServer(server, tools, unlisted);
  }
}

std::vector<std::shared_ptr<WorkspaceFolder>> WorkspaceFolders::OpenFolders() {
  std::vector<std::shared_ptr<WorkspaceFolder>> open;
  for (const auto& [path, folder] : all_) {
    if (auto held = folder.lock()) open.push_back(std::move(held));
  }
  return open;
}

std::vector<std::string> WorkspaceFolders::OpenPaths() {
  std::vector<std::shared_ptr<WorkspaceFolder>> open;  // destroyed after the lock is released
  {
    const MutexLock lock(mutex_);
    open = OpenFolders();
  }
  std::vector<std::string> paths = {home_->path()};
  for (const auto& folder : open) paths.push_back(folder->path());
  return paths;
}

Result<void> WorkspaceFolders::AddServer(const McpServerOptions& server) {
  {
    const MutexLock lock(mutex_);
    serving_.insert(server.name);
  }
  return home_->servers()->Add(server, server.command.empty() ? "" : McpFolder(home_->options()));
}

void WorkspaceFolders::RemoveServer(const std::string& name) {
  home_->servers()->Remove(name);
  std::vector<std::shared_ptr<WorkspaceFolder>> open;
  {
    const MutexLock lock(mutex_);
    serving_.erase(name);
    servers_.erase(name);
    open = OpenFolders();
  }
  for (const auto& folder : open) {
    if (Takes(*folder, name)) folder->tools().RemoveServer(name);
  }
  home_->tools().RemoveServer(name);
}

namespace {

// The folder's path without symbolic links.
Result<std::string> FolderAt(const std::string& path) {
  if (!path.starts_with('/')) return Fail(Reason::kInvalidMember, "\"workspace\" must be the full path of a folder");
  std::error_code failed;
  const std::string there = fs::canonical(path, failed).string();
  if (failed || !IsDirectory(there)) {
    return Fail(Reason::kNoSuchWorkspace, "there is no folder " + VisibleLine(path) +
                                              " to work in; a chat whose folder has moved can be given its new place "
                                              "(PATCH /chats/{chat_id} with \"workspace\")");
  }
  return there;
}

Error NotAllowed(const std::string& path, const std::string& why) {
  return Refused(Reason::kWorkspaceNotAllowed, "chats may not work in " + VisibleLine(path) + ": " + why);
}

}  // namespace

Result<std::string> WorkspaceFolders::Choose(const std::string& path) const {
  std::string there = TRY(FolderAt(path));
  if (there != home_->path()) TRY(CheckAllowed(there));
  return there;
}

bool WorkspaceFolders::IsListed(const std::string& path) const {
  const auto& listed = shared_.options.workspaces;
  return std::ranges::any_of(listed, [&](const auto& allowed) { return LiesBeneath(path, Resolved(allowed)); });
}

Result<void> WorkspaceFolders::CheckStillAllowed(const std::string& path) const {
  if (::access(path.c_str(), R_OK | X_OK) != 0) return Fail(NotAllowed(path, "it cannot be read"));
  if (!IsHomeFolder(path, ProcessEnvironment()) || IsListed(path) ||
      IsFolderAllowed(shared_.options.trust_file, path)) {
    return {};
  }
  return Fail(NotAllowed(path, "it is your home folder; `reprise trust ~` allows that"));
}

Result<void> WorkspaceFolders::CheckAllowed(const std::string& path) const {
  const Options& options = shared_.options;
  const auto refuse = [&](const std::string& why) { return Fail(NotAllowed(path, why)); };
  if (!IsUtf8(path) || HasControlCharacter(path)) return refuse("its name has unusual characters");
  const bool is_listed = IsListed(path);
  if (!is_listed && (options.auth.has_people() || !options.token_file.empty())) {
    return refuse("it is in none of the configured \"workspaces\"");
  }
  TRY(CheckStillAllowed(path));
  if (IsHomeFolder(path, ProcessEnvironment())) return {};
  for (const std::string& own : {options.data_dir, ParentDirectory(KeyFileOf(options)), ConfigDirectoryOf(options)}) {
    const fs::path closed = Resolved(own);
    if (LiesBeneath(path, closed)) return refuse("it is the server's own");
    if (LiesBeneath(closed, path) && !is_listed) return refuse("the server keeps files of its own below it");
  }
  if (path == "/") return refuse("it is the whole machine");
  for (const char* system : {"/proc", "/sys", "/dev"}) {
    if (LiesBeneath(path, system) && !LiesBeneath(path, "/dev/shm")) return refuse("it is the system's own");
  }
  // The server finds the programs of hooks and documents there, and an agent could replace them.
  const char* const search_path = std::getenv("PATH");
  const std::string everywhere = SearchPathOutside(search_path == nullptr ? "" : search_path, "/nowhere");
  if (SearchPathOutside(everywhere, path) != everywhere) return refuse("a folder of the server's PATH lies there");
  return {};
}

// A folder that is as it was configured; null if it is not open.
std::shared_ptr<WorkspaceFolder> WorkspaceFolders::Known(const std::string& path, const std::string& digest) {
  if (path == home_->path() && digest == home_->options().folder_digest) return home_;
  const MutexLock lock(mutex_);
  const auto found = all_.find(path);
  auto folder = found == all_.end() ? nullptr : found->second.lock();
  if (!folder || folder->options().folder_digest != digest) return nullptr;
  std::erase(kept_, folder);
  kept_.push_back(folder);
  return folder;
}

Result<Options::OfFolder> WorkspaceFolders::OptionsOf(const std::string& path) const {
  if (shared_.options.of_folder) return shared_.options.of_folder(path);
  const Options& all = shared_.options;
  return Options::OfFolder{all.folder_digest, [&all, path]() -> Result<Options> { return For(all, path); }};
}

// Whether each folder has its own of this server.
bool WorkspaceFolders::IsOwnServer(const McpServerOptions& server) {
  const MutexLock lock(mutex_);
  return !ServesAll(server) || !serving_.contains(server.name);
}

Result<std::shared_ptr<WorkspaceFolder>> WorkspaceFolders::Find(const std::string& given) {
  const std::string& path = given.empty() ? home_->path() : given;
  if (path.empty()) return home_;
  const bool is_home = path == home_->path();
  // It may have become a link.
  if (const std::string there = is_home ? path : TRY(FolderAt(path)); there != path) {
    return Fail(BecameLink(path, there));
  }
  if (!is_home) TRY(CheckStillAllowed(path));
  const auto configured = TRY(OptionsOf(path));
  if (auto folder = Known(path, configured.digest)) return folder;
  const MutexLock alone(opening_);
  if (auto folder = Known(path, configured.digest)) return folder;
  const Options options = TRY(configured.options());
  if (!is_home) TRY(CheckAllowed(path));  // an earlier process may have chosen it
  TRY(RequireTrust(options, TRY(FilesToTrust(options)), /*ask=*/false));
  TRY(shared_.added_servers->CheckFolder(path));
  const bool is_own = options.folder_digest != shared_.options.folder_digest;
  auto folder = TRY(WorkspaceFolder::Open(shared_, options, path, is_own));
  std::vector<std::shared_ptr<WorkspaceFolder>> given_up;  // destroyed after the lock is released
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, server] : servers_) {
      if (Takes(*folder, name)) folder->tools().SetServer(server.server, server.tools, server.unlisted);
    }
    std::erase_if(all_, [](const auto& each) { return each.second.expired(); });
    std::erase_if(kept_, [&](const auto& each) { return each->path() == path && (given_up.push_back(each), true); });
    all_[path] = folder;
    kept_.push_back(folder);
    if (kept_.size() > kMostKept) {
      given_up.push_back(kept_.front());
      kept_.erase(kept_.begin());
    }
  }
  // A server may have been added meanwhile; one that is added from now on sees the folder (OpenPaths).
  if (auto still = shared_.added_servers->CheckFolder(path); !still) {
    const MutexLock lock(mutex_);
    all_.erase(path);
    std::erase(kept_, folder);
    return Fail(std::move(still.error()));
  }
  std::vector<McpServerOptions> servers;
  std::ranges::copy_if(options.mcp_servers, std::back_inserter(servers),
                       [this](const McpServerOptions& server) { return IsOwnServer(server); });
  if (servers.empty()) return folder;
  ToolCatalog& tools = folder->tools();
  folder->StartServers(
      std::move(servers),
      [&tools](ToolServer server, std::vector<std::shared_ptr<Tool>> its, UnlistedTool unlisted) {
        tools.SetServer(std::move(server), std::move(its), std::move(unlisted));
      },
      home_->servers()->memory());
  return folder;
}

// --- of one tenant ---------------------------------------------------------------------------------------------------

std::shared_ptr<const WorkspaceParts> TenantWorkspaces::Of(std::shared_ptr<WorkspaceFolder> folder) const {
  struct Held {
    std::shared_ptr<WorkspaceFolder> folder;
    std::unique_ptr<TrackedHistory> history;
    WorkspaceParts parts;
  };
  auto history = folder->tracker() ? std::make_unique<TrackedHistory>(*folder->tracker(), blobs_, shared_) : nullptr;
  auto parts = folder->PartsFor(is_operator_, history.get());
  const auto held = std::make_shared<Held>(Held{std::move(folder), std::move(history), std::move(parts)});
  return {held, &held->parts};
}

Result<std::shared_ptr<const WorkspaceParts>> TenantWorkspaces::Open(const std::string& path) {
  auto folder = TRY(folders_.Find(path));
  return folder == folders_.home() ? home_ : Of(std::move(folder));
}

}  // namespace reprise
