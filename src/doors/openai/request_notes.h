#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/json.h"
#include "base/mutex.h"
#include "doors/door.h"
#include "doors/openai/request.h"
#include "reprise/engine.h"
#include "reprise/ids.h"
#include "wire/message.h"

namespace reprise::openai {
// Keeps facts that requests stated about their responses and no chat stores, for clients that read a response while the
// server that began it runs. The oldest notes are forgotten. Thread-safe.
class RequestNotes {
 public:
  void Note(const InteractionRef& response, const OpenAiRequest& asked);
  // Copies the note, if it still exists, into `asked`.
  void Recall(const InteractionRef& response, OpenAiRequest& asked);
  // The same for a conversation's metadata, a JSON object.
  void NoteMetadata(const ChatId& conversation, const std::string& metadata);
  std::string MetadataOf(const ChatId& conversation);

 private:
  struct Noted {
    std::string asked_model{}, instructions{}, metadata{};
    std::optional<std::string> conversation{};  // that the request named
    bool background = false;
    std::size_t bytes() const {
      return asked_model.size() + instructions.size() + metadata.size() + conversation.value_or("").size();
    }
  };
  void Keep(const std::string& id, Noted noted) REQUIRES(mutex_);
  Mutex mutex_;
  std::unordered_map<std::string, Noted> notes_ GUARDED_BY(mutex_);  // by the id of the response or chat
  std::deque<std::string> ids_ GUARDED_BY(mutex_);
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;
};

// Adds the routes of OpenAI's Conversations, which show chats and the items of their responses.
void AddConversationRoutes(Router& router, const Door& door, std::shared_ptr<RequestNotes> notes);

// Shows interactions in the forms of OpenAI's Responses: as a response, and as items of a conversation.

// The interaction's current response, as one object. `page`: see AgentTranslator.
Result<std::string> ResponseText(Engine& engine, const Interaction& interaction, OpenAiRequest asked,
                                 const std::string& page);

// The user's message, with its files.
Json InputItem(const Interaction& interaction);
// The user's message and the output of the response.
Result<std::vector<Json>> ItemsOf(Engine& engine, const Interaction& interaction, const std::string& page);

// The interaction to which an item's id belongs, with its chat; nullopt if the id is not ours.
std::optional<InteractionRef> InteractionOfItem(std::string_view id);

// The response in the request's path. kNotFound if its id cannot be one of ours.
Result<InteractionRef> ResponseInPath(const Request& request);

}  // namespace reprise::openai
