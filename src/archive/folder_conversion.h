#pragma once

#include <memory>
#include <string>
#include <vector>

#include "crypto/key_set.h"
#include "reprise/ids.h"
#include "reprise/result.h"
#include "store/object_store.h"
#include "terminal/progress.h"

namespace reprise {

// Which keys a data folder has, and which it is to get; null: plain.
struct KeyChange {
  std::shared_ptr<const KeySet> from, to;
};

// Makes a data folder anew under other keys and puts it in the old one's place, in one step. The old one stays beside
// it, with its trash and whatever else lay in it; its path is returned. Interactions that have not ended go along.
//
// kConflict if a server uses the folder; kCorruption (reason of the first problem) if anything in it is damaged;
// kUnavailable if interactions wait to be brought home to it, or the file system cannot exchange two folders. Nothing
// has changed then, nor if it is interrupted (kCancelled). `progress` watches `counter`.
//
// Files that are in `bucket` (null: there is none) are in the new folder itself; their objects stay for the old one.
Result<std::string> ConvertFolder(const std::string& root, const KeyChange& keys, const FileBucket* bucket,
                                  std::vector<ChatId>& converted, WorkCounter& counter, Progress& progress);

// What a Progress shows while IncomingChats copies these chats with all that is in them. `doing`: "sealing", say.
LongTask CopyTask(const std::string& doing, const std::string& root, const std::vector<ChatId>& chats,
                  const Progress& progress);

}  // namespace reprise
