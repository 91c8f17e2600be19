#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/folder_copies.h"
#include "base/mutex.h"
#include "crypto/key_set.h"
#include "mcp/mcp_servers.h"
#include "reprise/blob_store.h"
#include "reprise/engine.h"
#include "reprise/file_system.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "reprise/tool.h"
#include "reprise/transport.h"
#include "reprise/workspaces.h"
#include "rewind/workspace_files.h"
#include "rewind/workspace_tracker.h"
#include "tools/shell/hook_commands.h"
#include "tools/tool_catalog.h"

namespace reprise {

class AddedServers;

// One folder in which agents work, with its tools and all else that depends on it. Users share it. Thread-safe.
class WorkspaceFolder {
 public:
  struct Shared {  // all must outlive the folder
    const Options& options;
    Transport& transport;
    FileSystem& disk;
    const std::vector<std::shared_ptr<Tool>>& own_tools;  // of the embedding program
    std::shared_ptr<const KeySet> keys;                   // null if chats are plain
    std::function<Result<std::unique_ptr<ModelDirectory>>(const Options&)> make_models;
    AddedServers* added_servers = nullptr;  // beside the configured ones; WorkspaceFolders needs it
  };
  // `options` are the folder's own: `settings` are made of them if `is_own`. `path` is absolute and free of symbolic
  // links; empty: there is no folder, and the tools that need one are off. Starts nothing. kForbidden (reason
  // "untrusted") if the configuration's programs lie there and are not allowed; kInvalidArgument as FilesOfPrograms.
  static Result<std::shared_ptr<WorkspaceFolder>> Open(const Shared& shared, Options options, const std::string& path,
                                                       bool is_own);

  const std::string& path() const { return path_; }
  const Options& options() const { return options_; }
  ToolCatalog& tools() { return *tools_; }
  // Connects to `servers`, whose commands run for this folder alone.
  void StartServers(std::vector<McpServerOptions> servers, ServerConnection::OnChange on_change,
                    std::shared_ptr<McpServers::Memory> memory);
  McpServers* servers() { return servers_.get(); }        // null: none; the server's own folder has them always
  WorkspaceTracker* tracker() { return tracker_.get(); }  // null: changes are not recorded
  // What an engine gets; `history` may be null. `is_operator`: may be asked for consents to tools.
  WorkspaceParts PartsFor(bool is_operator, WorkspaceHistory* history);

 private:
  WorkspaceFolder(const Shared& shared, Options options, std::string path);
  Result<void> OpenTools(const Shared& shared);
  Result<void> OpenSettings(const Shared& shared);

  const std::string path_;
  const Options options_;
  std::unique_ptr<ModelDirectory> models_;
  std::optional<FolderSettings> settings_;  // none: the server's
  Transport& transport_;
  FileSystem& disk_;
  const std::shared_ptr<const KeySet> keys_;
  std::shared_ptr<ProjectInstructions> instructions_;  // null without a system prompt
  PromptSource prompt_;  // null likewise; made once, because it tells of each unusable file once
  std::unique_ptr<ToolCatalog> tools_;
  std::unique_ptr<FolderCopies> copies_;          // null if there is no folder
  std::unique_ptr<ToolRegistry> tenant_tools_;    // without those that need the operator's consent
  std::unique_ptr<LocalWorkspaceReader> reader_;  // null if there is no folder
  std::unique_ptr<WorkspaceTracker> tracker_;
  std::unique_ptr<HookCommands> hooks_;
  std::unique_ptr<McpServers> servers_;  // last: their threads use the tools
};

// The folders in which chats work: the server's own, and up to 32 others that were used last. Thread-safe.
class WorkspaceFolders {
 public:
  // Opens the server's own folder. All of `shared` must outlive the object.
  static Result<std::unique_ptr<WorkspaceFolders>> Open(WorkspaceFolder::Shared shared);

  const std::shared_ptr<WorkspaceFolder>& home() const { return home_; }
  // Connects to the configured and the added servers; those with a URL, and all added ones, serve all folders.
  void StartServers();
  // Of the added ones. REQUIRES: StartServers was called.
  Result<void> AddServer(const McpServerOptions& server);
  void RemoveServer(const std::string& name);
  // The paths of all folders that are open.
  std::vector<std::string> OpenPaths();
  // As Workspaces::Choose.
  Result<std::string> Choose(const std::string& path) const;
  // As Workspaces::Open.
  Result<std::shared_ptr<WorkspaceFolder>> Find(const std::string& path);

 private:
  struct Server {
    ToolServer server;
    std::vector<std::shared_ptr<Tool>> tools;
    UnlistedTool unlisted;
  };
  explicit WorkspaceFolders(WorkspaceFolder::Shared shared) : shared_(std::move(shared)) {}
  Result<void> CheckAllowed(const std::string& path) const;
  // The part of it that may change while the folder is open.
  Result<void> CheckStillAllowed(const std::string& path) const;
  bool IsListed(const std::string& path) const;  // in "workspaces"
  Result<Options::OfFolder> OptionsOf(const std::string& path) const;
  std::shared_ptr<WorkspaceFolder> Known(const std::string& path, const std::string& digest);
  bool IsOwnServer(const McpServerOptions& server);
  std::vector<std::shared_ptr<WorkspaceFolder>> OpenFolders() REQUIRES(mutex_);
  void SetShared(ToolServer server, std::vector<std::shared_ptr<Tool>> tools, UnlistedTool unlisted);

  const WorkspaceFolder::Shared shared_;
  Mutex opening_;  // held while a folder is opened
  Mutex mutex_;
  std::set<std::string> serving_ GUARDED_BY(mutex_);  // names of the servers that serve all folders
  std::vector<std::shared_ptr<WorkspaceFolder>> kept_ GUARDED_BY(mutex_);         // the last used one at the end
  std::map<std::string, std::weak_ptr<WorkspaceFolder>> all_ GUARDED_BY(mutex_);  // by path; also those only in use
  std::map<std::string, Server> servers_ GUARDED_BY(mutex_);                      // those that serve all folders
  std::shared_ptr<WorkspaceFolder> home_;  // last: the threads of its servers use the others
};

// The same for one tenant, whose chats keep what files held.
class TenantWorkspaces final : public Workspaces {
 public:
  // `folders` and `blobs` must outlive it. `shared`: as for TrackedHistory.
  TenantWorkspaces(WorkspaceFolders& folders, BlobStore& blobs, bool shared, bool is_operator)
      : folders_(folders), blobs_(blobs), shared_(shared), is_operator_(is_operator) {}

  Result<std::string> Choose(const std::string& path) override { return folders_.Choose(path); }
  Result<std::shared_ptr<const WorkspaceParts>> Open(const std::string& path) override;
  std::shared_ptr<const WorkspaceParts> Home() const { return home_; }

 private:
  std::shared_ptr<const WorkspaceParts> Of(std::shared_ptr<WorkspaceFolder> folder) const;

  WorkspaceFolders& folders_;
  BlobStore& blobs_;
  const bool shared_, is_operator_;
  const std::shared_ptr<const WorkspaceParts> home_ = Of(folders_.home());
};

}  // namespace reprise
