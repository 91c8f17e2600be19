#include "engine/recorded_events.h"

#include <utility>

namespace reprise {
namespace {

std::optional<std::string> Text(const std::optional<InteractionId>& id) {
  if (!id) return std::nullopt;
  return id->str();
}

}  // namespace

AgentEvent StartOf(const Interaction& interaction) {
  return {.seq = 1,
          .round_index = 0,
          .at = interaction.created_at,
          .payload = event::InteractionStarted{.interaction_id = interaction.id.str(),
                                               .chat_id = interaction.chat_id.str(),
                                               .parent_id = Text(interaction.parent_id),
                                               .edited_from = Text(interaction.edited_from),
                                               .model = interaction.model,
                                               .attachments = interaction.attachments}};
}

std::vector<AgentEvent> RecordedEvents(const Interaction& interaction) {
  std::vector<AgentEvent> events;
  events.reserve(interaction.events.size() + 2);
  events.push_back(StartOf(interaction));
  events.insert(events.end(), interaction.events.begin(), interaction.events.end());
  if (IsFinished(interaction.status)) {
    const AgentEvent& last = events.back();
    events.push_back({.seq = last.seq + 1,
                      .round_index = last.round_index,
                      .at = interaction.completed_at.value_or(last.at),
                      .payload = event::InteractionComplete{interaction.id.str(), interaction.status}});
  }
  return events;
}

std::shared_ptr<EventLog> RecordedLog(const Interaction& interaction) {
  auto log = std::make_shared<EventLog>();
  for (const AgentEvent& event : RecordedEvents(interaction)) log->AppendRecorded(event);
  log->Close();
  return log;
}

}  // namespace reprise
