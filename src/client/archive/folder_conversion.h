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

// The present and the new keys of a data folder; null for plain.
struct KeyChange {
  std::shared_ptr<const KeySet> from, to;
};

// Rewrites a data folder under other keys and replaces the old one, in one step. The old one stays beside it, with its
// trash and any other files; returns its path. Unfinished interactions are included.
//
// kConflict if a server uses the folder; kCorruption (reason of the first problem) if anything in it is damaged;
// kUnavailable if interactions wait to be brought home to it, or the file system cannot exchange two folders. After a
// failure or an interrupt (kCancelled) nothing has changed. `progress` watches `counter`.
//
// Files in `bucket` (may be null) are copied into the new folder; their objects stay for the old one.
Result<std::string> ConvertFolder(const std::string& root, const KeyChange& keys, const FileBucket* bucket,
                                  std::vector<ChatId>& converted, WorkCounter& counter, Progress& progress);

// The task that a Progress shows while IncomingChats copies these chats with their files. `doing`: "sealing".
LongTask CopyTask(const std::string& doing, const std::string& root, const std::vector<ChatId>& chats,
                  const Progress& progress);

}  // namespace reprise
