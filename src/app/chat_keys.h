#pragma once

#include <memory>
#include <string>

#include "crypto/key_set.h"
#include "reprise/options.h"
#include "reprise/result.h"

// The keys of a configuration, as they fit a folder of chats.
namespace reprise {

// Null for --plain. kForbidden if there is no key file.
Result<std::shared_ptr<const KeySet>> KeysFor(const Options& options);
enum class FolderUse {
  kAdd,      // to the chats that are there
  kGiveUp,   // the same, and those whose keys are gone are given up
  kReplace,  // what is there is put in the other form
};
// The same for writing to `folder`: a key file is made if there is none, which the log says. kInvalidArgument if it
// would lie in there (a copy of the chats must not carry their key along); kForbidden as CheckFolderKeys.
Result<std::shared_ptr<const KeySet>> KeysForWriting(const Options& options, const std::string& folder,
                                                     FolderUse use = FolderUse::kAdd);
// The same for where a server keeps its chats: the data folder and, if the configuration names one, the database,
// before a key is made. kConflict if its tables are not those that this program needs; kForbidden, too, as
// CheckDatabaseKeys.
Result<std::shared_ptr<const KeySet>> KeysForServing(const Options& options, FolderUse use = FolderUse::kAdd);
// Whether the database holds what these keys fit (null: there are none, or chats are plain). Ok if there is none.
Result<void> CheckKeysOfDatabase(const Options& options, const KeySet* keys, FolderUse use = FolderUse::kAdd);
// Writes down which keys of the database are given up from now on.
Result<void> GiveUpKeysOfDatabase(const Options& options, const KeySet& keys);
// Writes down what seals there from now on. REQUIRES: the caller holds the folder's lock.
void NoteKeysOf(const std::string& folder, const KeySet* keys);

}  // namespace reprise
