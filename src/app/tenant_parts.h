#pragma once

#include <memory>
#include <string>
#include <vector>

#include "crypto/key_set.h"
#include "reprise/daily_usage.h"
#include "reprise/engine.h"
#include "reprise/file_store.h"
#include "reprise/file_system.h"
#include "reprise/grant_store.h"
#include "reprise/interaction_store.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "store/audit_file.h"
#include "store/file_interaction_store.h"

namespace reprise {

// What is one tenant's alone: a data folder, and the engine that knows no other. The single user is one too.
class TenantParts {
 public:
  // Opens the folder and brings home what an earlier process could not save there. Options and disk must outlive the
  // object. Failures are for the operator: kConflict if another process uses the folder.
  static Result<std::unique_ptr<TenantParts>> Open(const Options& options, std::string folder,
                                                   std::shared_ptr<const KeySet> keys, FileSystem& disk);

  // What tenants have in common.
  struct Common {
    const ModelDirectory& models;
    const ToolRegistry& tools;
    Hooks* hooks;
    PromptSource prompt;
    std::string workspace;
  };
  // Makes the engine, which takes up what an earlier process has left. Once.
  Result<void> Start(const Common& common);

  Engine& engine() { return *engine_; }
  void NoteUrl(std::string_view url) { store_->NoteUrl(url); }

 private:
  TenantParts(const Options& options, std::string folder, std::shared_ptr<const KeySet> keys, FileSystem& disk);
  void BringAllHome();

  const Options& options_;
  const std::string folder_;
  const std::shared_ptr<const KeySet> keys_;  // null: plain
  FileSystem& disk_;
  std::unique_ptr<FileInteractionStore> store_;
  std::vector<std::unique_ptr<InteractionStore>> fallback_stores_;
  std::unique_ptr<GrantStore> grants_;
  std::unique_ptr<FileStore> files_;
  std::unique_ptr<AuditFile> audit_;
  std::unique_ptr<DailyUsage> usage_;  // null: nobody counts
  std::unique_ptr<Engine> engine_;  // last: it uses all of the above
};

}  // namespace reprise
