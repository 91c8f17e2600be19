#pragma once

#include <string>

#include "crypto/key_set.h"
#include "remote/postgres/database.h"
#include "reprise/result.h"
#include "store/data_folder.h"

namespace reprise {

// What the chats of a database are sealed with, for somebody who has these keys (null: there are none): as
// ReadFolderKeys, of some chats and of some organizations' keys, so that a start takes the same time however much there
// is. The numbers are of what was looked at.
Result<FolderKeys> ReadDatabaseKeys(Database& database, const KeySet* keys);

// As CheckFolderKeys: kForbidden with reason "missing_key", "sealed_database" or "plain_database".
Result<void> CheckDatabaseKeys(const FolderKeys& found, FolderMode mode, const std::string& key_file);

// Writes down that the missing keys are given up, for all servers. Writes nothing if none is missing.
Result<void> NoteGivenUpKeys(const FolderKeys& found, Database& database, const KeySet& keys);

}  // namespace reprise
