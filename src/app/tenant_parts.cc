#include "app/tenant_parts.h"

#include <unistd.h>

#include <utility>

#include "app/factories.h"
#include "app/keys.h"
#include "app/secrets.h"
#include "base/logging.h"
#include "base/try.h"
#include "store/file_blob_store.h"
#include "store/file_names.h"
#include "store/local_run_store.h"
#include "store/object_store.h"
#include "store/sealed_file_store.h"
#include "store/tenant_files.h"
#include "store/unsaved.h"
#include "tools/arguments.h"
#include "tools/documents/sandboxed_reader.h"

namespace reprise {

TenantParts::TenantParts(const Shared& shared, Place place)
    : options_(shared.options), place_(std::move(place)), disk_(shared.disk) {
  if (shared.bucket) bucket_.emplace(FileBucket{.objects = shared.bucket->objects()});
}

Result<std::unique_ptr<TenantParts>> TenantParts::Open(const Shared& shared, Place place) {
  std::unique_ptr<TenantParts> parts(new TenantParts(shared, std::move(place)));
  TRY(shared.database ? parts->OpenDatabase(*shared.database) : parts->OpenFolder());
  const bool counts = shared.options.auth.has_people() || shared.options.budget.max_tokens_per_day > 0;
  if (!counts) parts->usage_ = nullptr;
  return parts;
}

Result<void> TenantParts::OpenDatabase(SharedDatabase& database) {
  postgres_ = TRY(PostgresParts::Open(
      database, {.tenant = place_.tenant, .keys = place_.keys, .files = options_.files, .bucket = bucket()}));
  TRY(TakeNewObjects(DatabaseFiles::kRoot, postgres_->store().files()));
  store_ = &postgres_->store();
  runs_ = &postgres_->runs();
  files_ = &postgres_->files();
  blobs_ = &postgres_->blobs();
  grants_ = &postgres_->grants();
  audit_ = &postgres_->audit();
  usage_ = &postgres_->usage();
  return {};
}

Result<void> TenantParts::OpenFolder() {
  folder_store_ = TRY(FileInteractionStore::Open(
      {.root = place_.folder, .keys = place_.keys, .file_system = disk_, .bucket = bucket()}));
  folder_runs_ = std::make_unique<LocalRunStore>(*folder_store_);
  TRY(TakeNewObjects(place_.folder, disk_));
  NoteKeysOf(place_.folder, place_.keys.get());
  folder_grants_ = std::make_unique<FileGrantStore>(disk_, place_.folder, place_.keys);
  static_cast<void>(folder_grants_->List());  // logs unreadable grants now
  folder_files_ = std::make_unique<SealedFileStore>(SealedFileStore::Options{
      .root = place_.folder, .keys = place_.keys, .file_system = disk_, .limits = options_.files, .bucket = bucket()});
  store_ = folder_store_.get();
  runs_ = folder_runs_.get();
  folder_usage_ = std::make_unique<DailyUsageFile>(disk_, UsedTodayFile(place_.folder));
  folder_audit_ = std::make_unique<AuditFile>(place_.folder, place_.keys, disk_);
  if (const auto end = folder_audit_->CheckEnd(); !end) {
    LogError("the audit log is not as it was left", {{"code", end.error().reason}, {"error", end.error().message}});
  }
  files_ = folder_files_.get();
  folder_blobs_ = std::make_unique<FileBlobStore>(place_.folder, place_.keys, disk_);
  blobs_ = folder_blobs_.get();
  grants_ = folder_grants_.get();
  audit_ = folder_audit_.get();
  usage_ = folder_usage_.get();
  BringAllHome();
  return {};
}

// New objects are possible from now on; nobody else makes the folder's prefix in the bucket.
Result<void> TenantParts::TakeNewObjects(const std::string& folder, FileSystem& file_system) {
  if (bucket_) bucket_->prefix = TRY(ObjectPrefixOf(folder, file_system, /*make=*/true, place_.owner));
  return {};
}

void TenantParts::BringAllHome() {
  for (const std::string& folder : UnsavedFolders(place_.folder)) {
    const auto brought = BringHome(folder, place_.keys, disk_, *folder_store_);
    // An unreadable folder does not stop the server: the next start tries again, so nothing is lost.
    if (!brought) {
      LogWarning("unsaved interactions could not be brought home", {{"error", brought.error().message}});
    } else if (brought->moved + brought->left > 0) {
      LogInfo("unsaved interactions brought home", {{"moved", brought->moved}, {"left", brought->left}});
    }
    fallback_stores_.push_back(OpenUnsavedStore(folder, place_.keys, disk_));
  }
}

Result<void> TenantParts::Start(const Common& common) {
  workspaces_ =
      std::make_unique<TenantWorkspaces>(common.folders, *blobs_, /*shared=*/postgres_ != nullptr, common.is_operator);
  home_ = workspaces_->Home();
  Engine::Parts parts{
      .store = *store_, .runs = *runs_, .fallback_stores = {}, .models = common.models, .tools = home_->tools};
  if (options_.has_workspace()) parts.workspaces = workspaces_.get();
  parts.questions = postgres_ ? &postgres_->questions() : nullptr;
  parts.changes = postgres_ ? &postgres_->changes() : nullptr;
  parts.files = files_;
  parts.workspace_history = home_->history;
  parts.grants = grants_;
  parts.added_rules = common.added_rules;
  parts.prompt = home_->prompt;
  parts.audio = common.audio;
  parts.instructions = home_->instructions;
  parts.workspace_reader = home_->reader;
  if (common.documents)
    documents_ = std::make_unique<DocumentShare>(*common.documents, place_.owner.org + "\n" + place_.owner.user);
  parts.documents = documents_.get();
  parts.audit = audit_;
  parts.hooks = home_->hooks;
  parts.telemetry = common.telemetry;
  parts.finished = [to = common.auto_export, tenant = place_.tenant](const Interaction& one) { to->Add(one, tenant); };
  // A database has no place for devices yet.
  if (!postgres_) parts.attention = common.pushes->Open(place_.tenant, place_.folder, place_.keys);
  parts.usage = usage_;
  parts.secrets = SecretsOf(options_, environ);
  parts.learned_secrets = common.learned_secrets;
  parts.guardrails = options_.guardrails;
  parts.check_form = CheckForm;
  for (const auto& fallback : fallback_stores_) parts.fallback_stores.push_back(fallback.get());
  // A hanging disk is given up; an unavailable database comes back.
  EngineOptions options = EngineOptionsOf(options_, home_->path);
  if (postgres_) options.save_timeout = {};
  engine_ = std::make_unique<Engine>(std::move(parts), std::move(options));
  const auto recovered = TRY(engine_->Recover());
  if (recovered.waiting + recovered.failed + recovered.left > 0) {
    LogInfo("interrupted interactions taken up",
            {{"waiting", recovered.waiting}, {"failed", recovered.failed}, {"left", recovered.left}});
  }
  return {};
}

}  // namespace reprise
