#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "remote/postgres/tenant_database.h"
#include "reprise/file_system.h"

namespace reprise {

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

}  // namespace reprise
