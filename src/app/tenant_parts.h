#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/auto_export.h"
#include "app/chat_bucket.h"
#include "app/device_push.h"
#include "app/workspace_folders.h"
#include "approval/rules.h"
#include "crypto/key_set.h"
#include "remote/postgres/postgres_tenant_stores.h"
#include "remote/postgres/shared_database.h"
#include "reprise/audio.h"
#include "reprise/audit_log.h"
#include "reprise/blob_store.h"
#include "reprise/daily_usage.h"
#include "reprise/engine.h"
#include "reprise/file_store.h"
#include "reprise/file_system.h"
#include "reprise/grant_store.h"
#include "reprise/interaction_store.h"
#include "reprise/options.h"
#include "reprise/principal.h"
#include "reprise/result.h"
#include "reprise/run_store.h"
#include "reprise/telemetry.h"
#include "store/audit_file.h"
#include "store/file_interaction_store.h"

namespace reprise {

class LearnedSecrets;
class SandboxedReader;

// The parts of one tenant alone: its stores, and an engine that knows only these. The single user is a tenant too.
class TenantParts {
 public:
  struct Place {
    Principal owner;                     // without names for the single user or the operator
    std::string tenant;                  // the owner's name in rows and records (TenantOf)
    std::string folder;                  // its data folder; not used by a tenant of a database
    std::shared_ptr<const KeySet> keys;  // null if chats are plain
  };
  // The server's parts that all tenants' stores share.
  struct Shared {
    const Options& options;
    FileSystem& disk;
    ChatBucket* bucket;        // null if files lie with their chats
    SharedDatabase* database;  // null if chats are in folders
  };
  // Opens the stores of `place` and brings home interactions that an earlier process could not save there. All
  // references must outlive the object. Failures are for the operator: kConflict if another process uses the folder.
  static Result<std::unique_ptr<TenantParts>> Open(const Shared& shared, Place place);

  // The other parts that tenants share.
  struct Common {
    const ModelDirectory& models;
    WorkspaceFolders& folders;
    bool is_operator;  // may be asked for consents to tools
    Audio* audio;
    SandboxedReader* documents;
    Telemetry* telemetry;
    AutoExport* auto_export;
    DevicePushes* pushes;
    std::shared_ptr<const LearnedSecrets> learned_secrets;
    std::function<ToolRules()> added_rules;  // Engine::Parts
  };
  // Makes the engine and recovers the runs of an earlier process. Call it once.
  Result<void> Start(const Common& common);

  Engine& engine() { return *engine_; }
  AuditLog* audit() { return audit_; }
  void NoteUrl(std::string_view url) {
    if (folder_store_) folder_store_->NoteUrl(url);
  }

 private:
  TenantParts(const Shared& shared, Place place);
  Result<void> OpenDatabase(SharedDatabase& database);
  Result<void> OpenFolder();
  Result<void> TakeNewObjects(const std::string& folder, FileSystem& file_system);
  void BringAllHome();
  const FileBucket* bucket() const { return bucket_ ? &*bucket_ : nullptr; }

  const Options& options_;
  const Place place_;
  FileSystem& disk_;
  std::optional<FileBucket> bucket_;
  // Either the folder_ members or postgres_ are set.
  std::unique_ptr<FileInteractionStore> folder_store_;
  std::unique_ptr<RunStore> folder_runs_;
  std::unique_ptr<FileStore> folder_files_;
  std::unique_ptr<GrantStore> folder_grants_;
  std::unique_ptr<AuditFile> folder_audit_;
  std::unique_ptr<BlobStore> folder_blobs_;
  std::unique_ptr<DailyUsage> folder_usage_;
  std::unique_ptr<PostgresParts> postgres_;
  InteractionStore* store_ = nullptr;
  RunStore* runs_ = nullptr;
  FileStore* files_ = nullptr;
  std::vector<std::unique_ptr<InteractionStore>> fallback_stores_;
  BlobStore* blobs_ = nullptr;
  std::unique_ptr<TenantWorkspaces> workspaces_;
  std::shared_ptr<const WorkspaceParts> home_;
  GrantStore* grants_ = nullptr;
  std::unique_ptr<DocumentReader> documents_;  // null if documents are not read
  AuditLog* audit_ = nullptr;
  DailyUsage* usage_ = nullptr;     // null if usage is not counted
  std::unique_ptr<Engine> engine_;  // last, because it uses all of the above
};

}  // namespace reprise
