#pragma once

#include <string>

#include "crypto/key_set.h"
#include "remote/postgres/database.h"
#include "reprise/result.h"
#include "store/data_folder.h"

namespace reprise {

// As ReadFolderKeys, for the chats of a database and an owner of these keys (null: none). Looks only at a sample of
// chats and of organizations' keys, so that a start takes the same time for any size. The numbers are of the sample.
Result<FolderKeys> ReadDatabaseKeys(Database& database, const KeySet* keys);

// As CheckFolderKeys: kForbidden with reason "missing_key", "sealed_database" or "plain_database".
Result<void> CheckDatabaseKeys(const FolderKeys& found, FolderMode mode, const std::string& key_file);

// Records for all servers that the missing keys are given up. Writes nothing if none is missing.
Result<void> NoteGivenUpKeys(const FolderKeys& found, Database& database, const KeySet& keys);

}  // namespace reprise
