#include "remote/postgres/postgres_parts.h"

#include "base/try.h"
#include "store/file_blob_store.h"
#include "store/sealed_file_store.h"

namespace reprise {

Result<std::unique_ptr<PostgresParts>> PostgresParts::Open(SharedDatabase& shared, Options options) {
  Database& database = shared.database();
  std::unique_ptr<PostgresParts> parts(new PostgresParts);
  parts->store_ = TRY(PostgresStore::Open({.database = database,
                                           .keys = options.keys,
                                           .tenant = options.tenant,
                                           .bucket = options.bucket,
                                           .finishes = &shared.finishes(),
                                           .instance = shared.lease().instance()}));
  parts->files_ = std::make_unique<SealedFileStore>(SealedFileStore::Options{.root = DatabaseFiles::kRoot,
                                                                             .keys = options.keys,
                                                                             .file_system = parts->store_->files(),
                                                                             .limits = options.files,
                                                                             .bucket = options.bucket});
  parts->blobs_ = std::make_unique<FileBlobStore>(DatabaseFiles::kRoot, options.keys, parts->store_->files());
  parts->runs_ = std::make_unique<PostgresRunStore>(database, *parts->store_, shared.lease(), shared.run_signals(),
                                                    shared.journal_writer());
  parts->questions_ = std::make_unique<PostgresQuestionStore>(database, *parts->store_, shared.run_signals(),
                                                              shared.lease().instance());
  parts->changes_ = PostgresChanges::Make({.database = database,
                                           .signals = shared.signals(),
                                           .topic = shared.topic_of_changes(),
                                           .tenant = options.tenant,
                                           .instance = shared.lease().instance()});
  parts->look_at_changes_ = shared.EverySecond([raw = parts->changes_.get()] { raw->LookEverySecond(); });
  parts->grants_ = std::make_unique<PostgresGrantStore>(database, options.tenant, options.keys);
  parts->audit_ = std::make_unique<PostgresAuditLog>(database, *parts->store_);
  parts->usage_ = std::make_unique<PostgresDailyUsage>(database, options.tenant);
  return parts;
}

}  // namespace reprise
