#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "crypto/key_set.h"
#include "remote/postgres/database.h"
#include "reprise/file_system.h"
#include "reprise/result.h"
#include "store/data_folder.h"

namespace reprise {

// The ids and versions of the chats of tenant $1 that can be read. One that is about to begin has a row, and nothing to
// be read.
inline constexpr const char* kListChats =
    "select id, version from reprise.chats c where tenant = $1 and (index_record is not null or "
    "exists(select from reprise.journal j where j.tenant = $1 and j.chat = c.id))";

// A database as a data folder (store/file_names): its rows are the files' contents. Indexes, queues, checkpoints and
// journals are read-only, because they have rules of their own; a chat's files and blobs and the folder's own small
// files can be replaced, one at a time and durably. Thread-safe.
class DatabaseFiles final : public FileSystem {
 public:
  static const std::string kRoot;  // the beginning of all paths

  // `database` must outlive it.
  DatabaseFiles(Database& database, std::string tenant) : database_(database, tenant), tenant_(std::move(tenant)) {}

  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override;
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override;
  // The name must be a temporary one; Rename makes a row of the file.
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> RemoveFile(const std::string& path) override;
  Result<bool> CreateDirectory(const std::string& path) override;
  Result<void> SyncDirectory(const std::string& path) override;

 private:
  class Written;
  struct Place;
  static Place PlaceOf(const std::string& path);
  Result<Rows> Read(const Place& place);

  TenantDatabase database_;
  const std::string tenant_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<std::string>> written_ GUARDED_BY(mutex_);  // by temporary path
};

// As ReadFolderKeys, for the chats of a database and an owner of these keys (null: none). Looks only at a sample of
// chats and of organizations' keys, so that a start takes the same time for any size. The numbers are of the sample.
Result<FolderKeys> ReadDatabaseKeys(Database& database, const KeySet* keys);

// As CheckFolderKeys: kForbidden with reason "missing_key", "sealed_database" or "plain_database".
Result<void> CheckDatabaseKeys(const FolderKeys& found, FolderMode mode, const std::string& key_file);

// Records for all servers that the missing keys are given up. Writes nothing if none is missing.
Result<void> NoteGivenUpKeys(const FolderKeys& found, Database& database, const KeySet& keys);

}  // namespace reprise
