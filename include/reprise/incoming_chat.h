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

// A whole chat for import into a store.
struct IncomingChat {
  ChatSummary summary;                      // as the store must keep it
  std::vector<InteractionId> interactions;  // rising; finished, each after its parent
  // Returns one of them with its whole state and the summary's id as `chat_id`. Called twice each, to write and to
  // compare, in order and never at once: a state that shares messages with the previous one costs only its additions.
  std::function<Result<Interaction>(InteractionId)> load;
  // Instead of `load`, for a chat that is too large for that: returns them as additions to their parents' states.
  // Called once each, in order. `summary` may then lack title and head_status, which follow from them.
  std::function<Result<AddedInteraction>(InteractionId)> load_added{};
  std::map<InteractionId, std::vector<std::string>> journals{};  // records of unfinished interactions
  std::vector<QueuedMessage> queue{};
  std::vector<FileId> files{};
  std::function<Result<StoredFile>(const FileId&)> load_file{};        // returns one of them; called twice as well
  std::vector<std::string> blobs{};                                    // digests
  std::function<Result<std::string>(const std::string&)> load_blob{};  // returns one blob's content
};

}  // namespace reprise
