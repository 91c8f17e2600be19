#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reprise/file_store.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/queue.h"
#include "reprise/result.h"

namespace reprise {

// A whole chat on its way into a store.
struct IncomingChat {
  ChatSummary summary;                      // as the store is to keep it
  std::vector<InteractionId> interactions;  // rising; finished, and each after its parent
  // One of them, with `chat_id` the summary's id and its whole state. Called twice, to write it and to compare, in
  // their order and by one thread: a state that shares its messages with the one before it costs only what it adds.
  std::function<Result<Interaction>(InteractionId)> load;
  std::map<InteractionId, std::vector<std::string>> journals{};  // records of interactions that have not ended
  std::vector<QueuedMessage> queue{};
  std::vector<FileId> files{};
  std::function<Result<StoredFile>(const FileId&)> load_file{};        // one of them; called twice as well
  std::vector<std::string> blobs{};                                    // digests
  std::function<Result<std::string>(const std::string&)> load_blob{};  // the content of one of them
};

}  // namespace reprise
