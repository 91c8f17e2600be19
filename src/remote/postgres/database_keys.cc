#include "remote/postgres/database_keys.h"

#include <utility>

#include "base/try.h"
#include "remote/postgres/database_files.h"
#include "remote/postgres/tenant_database.h"

namespace reprise {
namespace {

constexpr const char* kSingleUser = "";  // the tenant whose chats are sealed by the operator's keys

// Chats, the first turns of chats that have no index yet, and the keys of organizations. The chats of users are sealed
// by the key of their organization, so that they only show whether they are sealed.
constexpr const char* kSample =
    "(select 'operator', index_record from reprise.chats where tenant = '' and index_record is not null limit 64) "
    "union all "
    "(select 'operator', record from reprise.journal where tenant = '' and position = 0 limit 16) union all "
    "(select 'operator', record from reprise.org_keys limit 64) union all "
    "(select 'user', index_record from reprise.chats where tenant <> '' and index_record is not null limit 16)";

}  // namespace

Result<FolderKeys> ReadDatabaseKeys(Database& database, const KeySet* keys) {
  DatabaseFiles files(database, kSingleUser);
  FolderKeys found;
  found.looked = true;
  found.given_up = GivenUpKeys(DatabaseFiles::kRoot, files);
  const Rows rows = TRY(TenantDatabase(database, TenantDatabase::kAll).Execute({.sql = kSample}));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto by = SealedBy(rows.text(row, 1));
    if (!by) continue;
    if (rows.text(row, 0) == "user") {
      ++(by->empty() ? found.plain_chats : found.sealed_chats);
    } else {
      CountChat(found, *by, keys);
    }
  }
  return found;
}

Result<void> CheckDatabaseKeys(const FolderKeys& found, FolderMode mode, const std::string& key_file) {
  if (mode == FolderMode::kPlain) {
    if (found.sealed_chats == 0 || found.plain_chats > 0) return {};
    return Fail(Reason::kSealedDatabase, "the chats in the database are sealed: leave --plain out");
  }
  if (found.plain_chats > 0 && found.sealed_chats == 0) {
    return Fail(Reason::kPlainDatabase, "the chats in the database are stored unencrypted: give --plain");
  }
  if (found.missing.empty()) return {};
  std::string kids;
  for (const auto& [kid, count] : found.missing) kids += (kids.empty() ? "" : ", ") + kid;
  return Fail(Reason::kMissingKey, "chats in the database are sealed with " + kids + ", which is not in " + key_file +
                                       ": put the key file back (or name it with --key-file), or give those chats up " +
                                       "with `reprise serve --new-key`");
}

Result<void> NoteGivenUpKeys(const FolderKeys& found, Database& database, const KeySet& keys) {
  if (found.missing.empty()) return {};
  DatabaseFiles files(database, kSingleUser);
  return NoteFolderKeys(found, DatabaseFiles::kRoot, &keys, files);
}

}  // namespace reprise
