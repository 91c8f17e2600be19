#include "archive/chat_source.h"

#include "app/org_keys.h"
#include "app/tenant_folder.h"
#include "base/posix_file_system.h"
#include "base/try.h"
#include "postgres/schema.h"
#include "postgres/tenant_database.h"

namespace reprise {

Result<ChatSource> ChatSource::Open(const Options& options) {
  if (options.store.type == StoreOptions::Type::kFiles) return ChatSource(options.data_dir);
  ChatSource source(DatabaseFiles::kRoot);
  source.database_ = TRY(Database::Open({.url = options.store.url}));
  TRY(CheckSchema(*source.database_));
  source.files_ = std::make_unique<DatabaseFiles>(*source.database_, /*tenant=*/"");
  return source;
}

Result<std::vector<ChatSource::OfUser>> ChatSource::OfUsers(const KeySet* operators) const {
  std::vector<OfUser> all;
  if (!database_) return all;
  const Rows rows =
      TRY(TenantDatabase(*database_, TenantDatabase::kAll)
              .Execute({.sql = "select t.tenant, t.org, t.name, k.record from reprise.tenants t left join "
                               "reprise.org_keys k on k.org = t.org order by t.org, t.name",
                        .values = {}}));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    Principal user{
        .role = Principal::Role::kUser, .org = std::string(rows.text(row, 1)), .user = std::string(rows.text(row, 2))};
    Result<std::shared_ptr<const KeySet>> keys = std::shared_ptr<const KeySet>();
    if (operators && rows.is_null(row, 3)) {
      keys = std::make_shared<const KeySet>(operators->BoundTo(TenantOf(user)));
    } else if (operators) {
      keys = KeysOfTenant(*operators, user, rows.text(row, 3));
    }
    all.push_back({std::move(user), std::make_unique<DatabaseFiles>(*database_, std::string(rows.text(row, 0))),
                   std::move(keys)});
  }
  return all;
}

FileSystem& ChatSource::file_system() const { return files_ ? static_cast<FileSystem&>(*files_) : Disk(); }

}  // namespace reprise
