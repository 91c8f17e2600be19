#include "app/tenant_parts.h"

#include <unistd.h>

#include <utility>

#include "app/chat_keys.h"
#include "app/secrets.h"
#include "base/logging.h"
#include "base/try.h"
#include "store/daily_usage_file.h"
#include "store/file_names.h"
#include "store/grant_file.h"
#include "store/sealed_file_store.h"
#include "store/unsaved.h"
#include "tools/form.h"

namespace reprise {

TenantParts::TenantParts(const Options& options, std::string folder, std::shared_ptr<const KeySet> keys,
                         FileSystem& disk)
    : options_(options), folder_(std::move(folder)), keys_(std::move(keys)), disk_(disk) {}

Result<std::unique_ptr<TenantParts>> TenantParts::Open(const Options& options, std::string folder,
                                                       std::shared_ptr<const KeySet> keys, FileSystem& disk) {
  std::unique_ptr<TenantParts> parts(new TenantParts(options, std::move(folder), std::move(keys), disk));
  auto store = FileInteractionStore::Open({.root = parts->folder_, .keys = parts->keys_, .file_system = disk});
  if (!store) return Fail(store.error());
  parts->store_ = *std::move(store);
  NoteKeysOf(parts->folder_, parts->keys_.get());
  parts->grants_ = std::make_unique<FileGrantStore>(disk, parts->folder_, parts->keys_);
  static_cast<void>(parts->grants_->List());  // what cannot be read is named in the log now
  parts->files_ = std::make_unique<SealedFileStore>(SealedFileStore::Options{
      .root = parts->folder_, .keys = parts->keys_, .file_system = disk, .limits = options.files});
  if (options.auth.has_people() || options.budget.max_tokens_per_day > 0) {
    parts->usage_ = std::make_unique<DailyUsageFile>(disk, UsedTodayFile(parts->folder_));
  }
  parts->BringAllHome();
  parts->audit_ = std::make_unique<AuditFile>(parts->folder_, parts->keys_, disk);
  if (const auto end = parts->audit_->CheckEnd(); !end) {
    LogError("the audit log is not as it was left", {{"code", end.error().reason}, {"error", end.error().message}});
  }
  return parts;
}

void TenantParts::BringAllHome() {
  for (const std::string& folder : UnsavedFolders(folder_)) {
    const auto brought = BringHome(folder, keys_, disk_, *store_);
    // A folder that cannot be read is no reason not to serve: nothing in it is lost by trying again at the next start.
    if (!brought) {
      LogWarning("unsaved interactions could not be brought home", {{"error", brought.error().message}});
    } else if (brought->moved + brought->left > 0) {
      LogInfo("unsaved interactions brought home", {{"moved", brought->moved}, {"left", brought->left}});
    }
    fallback_stores_.push_back(OpenUnsavedStore(folder, keys_, disk_));
  }
}

Result<void> TenantParts::Start(const Common& common) {
  Engine::Parts parts{.store = *store_, .fallback_stores = {}, .models = common.models, .tools = common.tools};
  parts.files = files_.get();
  parts.grants = grants_.get();
  parts.prompt = common.prompt;
  parts.audit = audit_.get();
  parts.hooks = common.hooks;
  parts.usage = usage_.get();
  parts.secrets = SecretsOf(options_, environ);
  parts.guardrails = options_.guardrails;
  parts.check_form = CheckForm;
  for (const auto& fallback : fallback_stores_) parts.fallback_stores.push_back(fallback.get());
  engine_ = std::make_unique<Engine>(std::move(parts),
                                     EngineOptions{.max_rounds = options_.max_rounds,
                                                   .disconnect_grace = options_.disconnect_grace,
                                                   .tool_timeout = options_.tools.timeout,
                                                   .approval_mode = options_.approval_mode,
                                                   .approval_expiry = options_.approval_expiry,
                                                   .max_retries = options_.max_retries,
                                                   .max_tool_calls_per_minute = options_.max_tool_calls_per_minute,
                                                   .budget = options_.budget,
                                                   .prices = options_.prices,
                                                   .workspace = common.workspace});
  const auto recovered = TRY(engine_->Recover());
  if (recovered.waiting + recovered.failed + recovered.left > 0) {
    LogInfo("interrupted interactions taken up",
            {{"waiting", recovered.waiting}, {"failed", recovered.failed}, {"left", recovered.left}});
  }
  return {};
}

}  // namespace reprise
