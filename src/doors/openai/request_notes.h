#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "doors/door.h"
#include "doors/openai/request.h"
#include "reprise/ids.h"

namespace reprise::openai {

// What requests have said of their responses and no chat keeps: for who reads a response while the server that began it
// runs. The oldest are forgotten. Thread-safe.
class RequestNotes {
 public:
  void Note(const InteractionRef& response, const OpenAiRequest& asked);
  // Gives `asked` what was noted, if it is still there.
  void Recall(const InteractionRef& response, OpenAiRequest& asked);
  // Likewise of a conversation: the metadata, a JSON object.
  void NoteMetadata(const ChatId& conversation, const std::string& metadata);
  std::string MetadataOf(const ChatId& conversation);

 private:
  struct Noted {
    std::string asked_model{}, instructions{}, metadata{};
    std::optional<std::string> conversation{};  // that the request has named
    bool background = false;
    std::size_t bytes() const {
      return asked_model.size() + instructions.size() + metadata.size() + conversation.value_or("").size();
    }
  };
  void Keep(const std::string& id, Noted noted) REQUIRES(mutex_);
  Mutex mutex_;
  std::unordered_map<std::string, Noted> notes_ GUARDED_BY(mutex_);  // by the response's id
  std::deque<std::string> ids_ GUARDED_BY(mutex_);
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;
};

// Adds the routes of OpenAI's Conversations, which show chats, and the items of their responses.
void AddConversationRoutes(Router& router, const Door& door, std::shared_ptr<RequestNotes> notes);

}  // namespace reprise::openai
