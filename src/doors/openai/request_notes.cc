#include "doors/openai/request_notes.h"

#include <utility>

namespace reprise::openai {
namespace {

constexpr std::size_t kMostNotes = 1'000;
constexpr std::size_t kMostBytes = 8u << 20;

}  // namespace

void RequestNotes::Note(const InteractionRef& response, const OpenAiRequest& asked) {
  Noted noted{.asked_model = asked.asked_model,
              .instructions = asked.instructions,
              .metadata = asked.metadata,
              .conversation = asked.continues ? asked.chat_name : std::nullopt,
              .background = asked.background};
  const MutexLock lock(mutex_);
  const std::string id = ResponseId(response);
  if (!notes_.contains(id)) Keep(id, std::move(noted));  // otherwise the request is a repeated one
}

void RequestNotes::NoteMetadata(const ChatId& conversation, const std::string& metadata) {
  const MutexLock lock(mutex_);
  if (const auto found = notes_.find(conversation.str()); found != notes_.end()) {
    bytes_ -= found->second.bytes();
    notes_.erase(found);
    std::erase(ids_, conversation.str());
  }
  Keep(conversation.str(), {.metadata = metadata});
}

std::string RequestNotes::MetadataOf(const ChatId& conversation) {
  const MutexLock lock(mutex_);
  const auto found = notes_.find(conversation.str());
  return found == notes_.end() ? "{}" : found->second.metadata;
}

void RequestNotes::Keep(const std::string& id, Noted noted) {
  bytes_ += noted.bytes();
  notes_.emplace(id, std::move(noted));
  ids_.push_back(id);
  while (ids_.size() > kMostNotes || bytes_ > kMostBytes) {
    const auto oldest = notes_.find(ids_.front());
    bytes_ -= oldest->second.bytes();
    notes_.erase(oldest);
    ids_.pop_front();
  }
}

void RequestNotes::Recall(const InteractionRef& response, OpenAiRequest& asked) {
  const MutexLock lock(mutex_);
  const auto found = notes_.find(ResponseId(response));
  if (found == notes_.end()) return;
  asked.asked_model = found->second.asked_model;
  asked.instructions = found->second.instructions;
  asked.metadata = found->second.metadata;
  asked.background = found->second.background;
  asked.chat_name = found->second.conversation;
  asked.continues = asked.chat_name.has_value();
}

}  // namespace reprise::openai
