#include "doors/openai/request_notes.h"

#include <utility>

namespace reprise {
namespace {

constexpr std::size_t kMostNotes = 1'000;
constexpr std::size_t kMostBytes = 8u << 20;

}  // namespace

void RequestNotes::Note(const InteractionRef& response, const OpenAiRequest& asked) {
  Noted noted{.asked_model = asked.asked_model,
              .instructions = asked.instructions,
              .metadata = asked.metadata,
              .background = asked.background};
  const std::size_t bytes = noted.bytes();
  std::string id = ResponseId(response);
  const MutexLock lock(mutex_);
  if (!notes_.emplace(id, std::move(noted)).second) return;  // the request came again
  bytes_ += bytes;
  ids_.push_back(std::move(id));
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
}

}  // namespace reprise
