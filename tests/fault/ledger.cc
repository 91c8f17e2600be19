#include "fault/ledger.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json.h"
#include "domain/codec.h"

namespace reprise {
namespace {

// DESIGN section 5: these events, and all before them, survive a power loss.
bool IsActedUpon(std::string_view name) {
  return name == event::ApprovalRequired::kName || name == event::ToolCallStarted::kName ||
         name == event::ToolResult::kName || name == event::Answer::kName || name == event::InteractionComplete::kName;
}

bool IsDeltaName(std::string_view name) {
  return name == event::TextDelta::kName || name == event::ThinkingDelta::kName ||
         name == event::ToolOutputDelta::kName;
}

}  // namespace

SeenEvents::SeenEvents(std::string text) : bytes(std::move(text)) {
  constexpr std::string_view kName = "\nevent: ", kData = "\ndata: ", kEnd = "\n\n";
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t name = bytes.find(kName, begin) + kName.size(), data = bytes.find(kData, name);
    const std::size_t end = bytes.find(kEnd, data);
    Frame frame{.name = bytes.substr(name, data - name), .end = end + kEnd.size()};
    const Json json = *ParseJson(std::string_view(bytes).substr(data + kData.size(), end - data - kData.size()));
    if (frame.name == event::TextDelta::kName) frame.text = json.at("content").get<std::string>();
    const bool is_frame =
        frame.name == event::InteractionStarted::kName || frame.name == event::InteractionComplete::kName;
    if (!IsDeltaName(frame.name) && !is_frame) frame.event = AgentEventFromJson(json).value();
    if (frame.name == event::Failed::kName) errors.push_back(json.at("code").get<std::string>());
    if (frame.name == event::InteractionComplete::kName) {
      ended = ParseInteractionStatus(json.at("status").get<std::string>());
    }
    begin = frame.end;
    frames.push_back(std::move(frame));
    if (IsActedUpon(frames.back().name)) acted_upon = frames.size();
  }
}

void Ledger::Note(Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_.emplace_back(position_(), std::move(entry));
}

std::size_t Ledger::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

const Promises& Ledger::Reader::At(std::size_t position) {
  const std::lock_guard lock(ledger_.mutex_);
  for (; next_ < ledger_.entries_.size() && ledger_.entries_[next_].first <= position; ++next_) {
    ledger_.entries_[next_].second(promises_);
  }
  return promises_;
}

const Promises& Ledger::Reader::AtTheEnd() { return At(std::numeric_limits<std::size_t>::max()); }

}  // namespace reprise
