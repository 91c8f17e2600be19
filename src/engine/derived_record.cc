#include "engine/derived_record.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "engine/attachments.h"

namespace reprise {
namespace {

tl::unexpected<Error> NotReplayable(std::string message) {
  return Fail(Error{.code = ErrorCode::kConflict, .reason = "not_replayable", .message = std::move(message)});
}

// Only a model that said something leads to one of these.
bool ShowsResponse(const EventPayload& payload) {
  return std::holds_alternative<event::Answer>(payload) || std::holds_alternative<event::MessageText>(payload) ||
         std::holds_alternative<event::ApprovalRequired>(payload) ||
         std::holds_alternative<event::ToolCallStarted>(payload) || std::holds_alternative<event::ToolResult>(payload);
}

// What the model said first of these messages was shown in round 0, as it is when a run begins with a request.
bool WasShown(const Message& said, const std::vector<AgentEvent>& events) {
  bool text_shown = said.content.value_or("").empty(), was_cut_off = false;
  std::set<std::string_view> ended;
  for (const AgentEvent& event : events) {
    const auto* failed = std::get_if<event::Failed>(&event.payload);
    was_cut_off = was_cut_off || (failed && failed->code == "interrupted");
    if (event.round_index != 0) continue;
    text_shown = text_shown || std::holds_alternative<event::MessageText>(event.payload) ||
                 std::holds_alternative<event::Answer>(event.payload);
    if (const auto* result = std::get_if<event::ToolResult>(&event.payload)) ended.insert(result->id);
  }
  const auto has_ended = [&](const ToolCall& call) { return ended.contains(call.id); };
  return text_shown && (was_cut_off || std::all_of(said.tool_calls.begin(), said.tool_calls.end(), has_ended));
}

// What the tasks and the plan may have been before these events, as only a change is shown: anything else.
std::optional<Agenda> AgendaBefore(const std::vector<AgentEvent>& events, const Agenda& last) {
  std::optional<Agenda> tasks_before, plan_before;
  for (const AgentEvent& event : events) {
    const auto* tasks = std::get_if<event::TaskUpdated>(&event.payload);
    const auto* plan = std::get_if<event::PlanUpdated>(&event.payload);
    if (tasks && !tasks_before)
      tasks_before = {.tasks = std::vector(tasks->tasks.empty() ? 1 : 0, Task{"", "another"})};
    if (plan && !plan_before) plan_before = {.plan = std::vector(plan->steps.empty() ? 1 : 0, std::string("another"))};
  }
  if (!tasks_before && !plan_before) return std::nullopt;
  return Agenda{.tasks = tasks_before ? tasks_before->tasks : last.tasks,
                .plan = plan_before ? plan_before->plan : last.plan};
}

}  // namespace

Result<RunRecord> DeriveRecord(const Interaction& interaction) {
  const Messages& messages = interaction.final_agent_state->messages;
  const std::string text = interaction.user_message + AttachedTo(interaction).text;
  const auto own = std::find_if(messages.rbegin(), messages.rend(), [&](const Message& message) {
    return message.role == Role::kUser && message.content == text;
  });
  if (own == messages.rend()) return NotReplayable("the final state does not have the interaction's own message");

  RunRecord record{.first_message = static_cast<std::size_t>(messages.rend() - own),
                   .agenda_before = AgendaBefore(interaction.events, interaction.final_agent_state->agenda)};
  if (!interaction.edited_from) return record;
  std::set<std::uint32_t> rounds;
  for (const AgentEvent& event : interaction.events) {
    if (ShowsResponse(event.payload)) rounds.insert(event.round_index);
  }
  std::vector<std::size_t> said;
  for (std::size_t i = record.first_message; i < messages.size(); ++i) {
    if (messages[i].role == Role::kAssistant) said.push_back(i);
  }
  // One that goes on where another one stopped has what that one said in its state.
  if (said.size() > rounds.size()) {
    record.first_message = rounds.empty() ? messages.size() : said[said.size() - rounds.size()];
  }
  const bool is_whole =
      record.first_message == messages.size() || WasShown(messages[record.first_message], interaction.events);
  if (is_whole || !rounds.contains(0)) return record;
  return NotReplayable("the run went on with calls of another interaction, and its file does not say with which");
}

}  // namespace reprise
