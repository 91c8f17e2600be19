#pragma once

#include <string>
#include <vector>

#include "doors/conversations.h"
#include "reprise/engine.h"

namespace reprise {

// A file within a message of a foreign client.
struct ForeignFile {
  std::string filename, mime_type, content;
};

// Executes the plan with the files of the last message, which become files of the chat and of the message. The same
// message with other files counts as an edit. Fails like Conversations::Begin and Engine::AddFile.
Result<EventSubscription> BeginWithFiles(Engine& engine, Conversations& conversations, ConversationPlan plan,
                                         const std::vector<ForeignFile>& files, StartRequest start);

}  // namespace reprise
