#include "archive/chat_source.h"

#include "base/posix_file_system.h"
#include "base/try.h"
#include "postgres/schema.h"

namespace reprise {

Result<ChatSource> ChatSource::Open(const Options& options) {
  if (options.store.type == StoreOptions::Type::kFiles) return ChatSource(options.data_dir);
  ChatSource source(DatabaseFiles::kRoot);
  source.database_ = TRY(Database::Open({.url = options.store.url}));
  TRY(CheckSchema(*source.database_));
  source.files_ = std::make_unique<DatabaseFiles>(*source.database_, /*tenant=*/"");
  return source;
}

FileSystem& ChatSource::file_system() const { return files_ ? static_cast<FileSystem&>(*files_) : Disk(); }

}  // namespace reprise
