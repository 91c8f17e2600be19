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
// Writes down what seals there from now on. REQUIRES: the caller holds the folder's lock.
void NoteKeysOf(const std::string& folder, const KeySet* keys);

}  // namespace reprise
