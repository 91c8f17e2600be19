#pragma once

#include <string>
#include <vector>

#include "base/queues.h"
#include "reprise/blob_store.h"
#include "reprise/file_store.h"
#include "reprise/interaction_store.h"

namespace reprise {

// Writes interactions of a chat as the plain JSON documents of schemas/ into `directory`/CHAT, long states as what they
// add, and the chat's files and blobs likewise: a folder that people, `reprise import` and `reprise serve --plain` can
// read. `chat` says which; the states are loaded from `store`, of `files` those that are not damaged: returns what
// is wrong with the others. All or nothing; kConflict (reason "file_exists") if the folder is there and not `replace`.
// `counter` counts each interaction that is written; kCancelled if it is told to stop.
Result<std::vector<Error>> WriteChatFolder(const std::string& directory, const Chat& chat, InteractionStore& store,
                                           FileStore& files, BlobStore& blobs, bool replace, WorkCounter& counter);

}  // namespace reprise
