#pragma once

#include <string>
#include <vector>

#include "doors/conversations.h"
#include "reprise/engine.h"

namespace reprise {

// A file that came within a message of a foreign client.
struct ForeignFile {
  std::string filename, mime_type, content;
};

// Does what the plan says, with the files of the last message: they become files of the chat, and the message's. The
// same message with other files than it had is an edit. Failures as those of Conversations::Begin and Engine::AddFile.
Result<EventSubscription> BeginWithFiles(Engine& engine, Conversations& conversations, ConversationPlan plan,
                                         const std::vector<ForeignFile>& files, StartRequest start);

}  // namespace reprise
