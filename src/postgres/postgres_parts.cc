#include "postgres/postgres_parts.h"

#include <utility>

#include "base/try.h"
#include "postgres/schema.h"
#include "store/sealed_file_store.h"

namespace reprise {

Result<std::unique_ptr<PostgresParts>> PostgresParts::Open(Options options) {
  std::unique_ptr<PostgresParts> parts(new PostgresParts);
  parts->database_ = TRY(Database::Open({.url = options.url}));
  TRY(CheckSchema(*parts->database_));
  const std::string instance = Lease::MakeInstance();
  const auto look = [raw = parts.get()] { raw->Look(); };
  parts->lease_database_ =
      TRY(Database::Open({.url = options.url,
                          .greetings = {"listen " + Lease::ChannelOf(instance)},
                          .on_notification = [look](std::string_view, std::string_view) { look(); },
                          .on_connected = look}));
  parts->store_ = TRY(PostgresStore::Open({.database = *parts->database_, .keys = options.keys}));
  parts->files_ = std::make_unique<SealedFileStore>(SealedFileStore::Options{.root = DatabaseFiles::kRoot,
                                                                             .keys = options.keys,
                                                                             .file_system = parts->store_->files(),
                                                                             .limits = options.files});
  parts->lease_ = TRY(Lease::Take(*parts->lease_database_, instance, options.version));
  parts->Tell(parts->lease_.get());
  parts->runs_ = std::make_unique<PostgresRunStore>(*parts->database_, *parts->store_, *parts->lease_);
  parts->questions_ = std::make_unique<PostgresQuestionStore>(*parts->database_, *parts->store_);
  return parts;
}

void PostgresParts::Tell(Lease* lease) {
  const MutexLock lock(told_mutex_);
  told_ = lease;
}

void PostgresParts::Look() {
  const MutexLock lock(told_mutex_);
  if (told_) told_->LookNow();
}

Result<void> PostgresParts::CheckReady() {
  if (database_->is_connected() && lease_->is_fresh()) return {};
  return Fail(Error{.code = ErrorCode::kUnavailable,
                    .reason = "database_unavailable",
                    .message = "the database cannot be reached",
                    .retryable = true});
}

void PostgresParts::BeginStop() {
  database_->BeginStop();
  lease_database_->BeginStop();
}

}  // namespace reprise
