#pragma once

#include <memory>
#include <string>

#include "crypto/key_set.h"
#include "reprise/options.h"
#include "reprise/result.h"

// The configured keys, checked against a folder of chats.
namespace reprise {

// Null for --plain. kForbidden if there is no key file.
Result<std::shared_ptr<const KeySet>> KeysFor(const Options& options);
enum class FolderUse {
  kAdd,      // add to the present chats
  kGiveUp,   // the same, and give up chats whose keys are gone
  kReplace,  // rewrite the present chats in the other form
};
// The same for writing to `folder`; makes and logs a key file if there is none. kInvalidArgument if it would lie in
// `folder`, because a copy of the chats must not carry their key along; kForbidden as CheckFolderKeys.
Result<std::shared_ptr<const KeySet>> KeysForWriting(const Options& options, const std::string& folder,
                                                     FolderUse use = FolderUse::kAdd);
// The same for a server's chats: checks the data folder and, if configured, the database, before a key is made.
// kConflict if the tables are not those of this program; kForbidden as CheckFolderKeys and CheckDatabaseKeys.
Result<std::shared_ptr<const KeySet>> KeysForServing(const Options& options, FolderUse use = FolderUse::kAdd);
// Whether these keys fit the content of the database (null: none, or plain chats). Ok if there is no database.
Result<void> CheckKeysOfDatabase(const Options& options, const KeySet* keys, FolderUse use = FolderUse::kAdd);
// Records which keys of the database are given up from now on.
Result<void> GiveUpKeysOfDatabase(const Options& options, const KeySet& keys);
// Records the keys that seal records there from now on. REQUIRES: the caller holds the folder's lock.
void NoteKeysOf(const std::string& folder, const KeySet* keys);

}  // namespace reprise
