#include "reprise/event.h"

#include <algorithm>
#include <array>
#include <utility>

namespace reprise {
namespace {

constexpr std::array<std::pair<InteractionStatus, std::string_view>, 6> kStatusNames{{
    {InteractionStatus::kRunning, "RUNNING"},
    {InteractionStatus::kWaitingApproval, "WAITING_APPROVAL"},
    {InteractionStatus::kWaitingInput, "WAITING_INPUT"},
    {InteractionStatus::kCompleted, "COMPLETED"},
    {InteractionStatus::kFailed, "FAILED"},
    {InteractionStatus::kCancelled, "CANCELLED"},
}};

}  // namespace

std::vector<WebSource> SourcesOf(const std::vector<Citation>& citations) {
  std::vector<WebSource> sources;
  for (const Citation& each : citations) {
    const auto is_same = [&](const WebSource& source) { return source.url == each.source.url; };
    if (std::ranges::none_of(sources, is_same)) sources.push_back(each.source);
  }
  return sources;
}

TokenUsage& TokenUsage::operator+=(const TokenUsage& more) {
  input_tokens += more.input_tokens;
  output_tokens += more.output_tokens;
  cache_read_tokens += more.cache_read_tokens;
  cache_write_tokens += more.cache_write_tokens;
  web_searches += more.web_searches;
  return *this;
}

std::string_view ToString(InteractionStatus status) {
  for (const auto& [value, name] : kStatusNames) {
    if (value == status) return name;
  }
  return "RUNNING";
}

std::optional<InteractionStatus> ParseInteractionStatus(std::string_view name) {
  for (const auto& [value, text] : kStatusNames) {
    if (text == name) return value;
  }
  return std::nullopt;
}

bool IsFinished(InteractionStatus status) {
  switch (status) {
    case InteractionStatus::kRunning:
    case InteractionStatus::kWaitingApproval:
    case InteractionStatus::kWaitingInput:
      return false;
    case InteractionStatus::kCompleted:
    case InteractionStatus::kFailed:
    case InteractionStatus::kCancelled:
      return true;
  }
  return false;
}

EventPayload::EventPayload() = default;
EventPayload::EventPayload(AnyEvent event) : AnyEvent(std::move(event)) {}
EventPayload::EventPayload(const EventPayload&) = default;
EventPayload::EventPayload(EventPayload&&) noexcept = default;
EventPayload& EventPayload::operator=(const EventPayload&) = default;
EventPayload& EventPayload::operator=(EventPayload&&) noexcept = default;
EventPayload::~EventPayload() = default;
bool EventPayload::operator==(const EventPayload& other) const {
  return static_cast<const AnyEvent&>(*this) == static_cast<const AnyEvent&>(other);
}

bool IsDelta(const EventPayload& payload) {
  return std::holds_alternative<event::TextDelta>(payload) || std::holds_alternative<event::ThinkingDelta>(payload) ||
         std::holds_alternative<event::SoundDelta>(payload) || std::holds_alternative<event::ToolOutputDelta>(payload);
}

bool IsFrame(const EventPayload& payload) {
  return std::holds_alternative<event::InteractionStarted>(payload) ||
         std::holds_alternative<event::InteractionComplete>(payload);
}

}  // namespace reprise
