#include "engine/recording.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <variant>

#include "agent/history.h"
#include "engine/attachments.h"

namespace reprise {
namespace {

// A file may say anything.
constexpr std::uint32_t kMostRounds = std::numeric_limits<int>::max() - 1;

Error NotReplayable(std::string message) {
  return {.code = ErrorCode::kConflict, .reason = "not_replayable", .message = std::move(message)};
}

bool IsLastWord(const AgentEvent& event) {
  return std::holds_alternative<event::Cancelled>(event.payload) ||
         std::holds_alternative<event::Failed>(event.payload);
}

// Only a model that said something leads to one of these.
bool ShowsResponse(const EventPayload& payload) {
  return std::holds_alternative<event::Answer>(payload) || std::holds_alternative<event::MessageText>(payload) ||
         std::holds_alternative<event::ApprovalRequired>(payload) ||
         std::holds_alternative<event::ToolCallStarted>(payload) || std::holds_alternative<event::ToolResult>(payload);
}

bool HasResult(const std::vector<AgentEvent>& events, std::uint32_t round, const std::string& call_id) {
  return std::any_of(events.begin(), events.end(), [&](const AgentEvent& event) {
    const auto* result = std::get_if<event::ToolResult>(&event.payload);
    return result && event.round_index == round && result->id == call_id;
  });
}

bool ShowsText(const std::vector<AgentEvent>& events, std::uint32_t round) {
  return std::any_of(events.begin(), events.end(), [&](const AgentEvent& event) {
    return event.round_index == round && std::holds_alternative<event::MessageText>(event.payload);
  });
}

// Where this interaction begins in its final state: behind the last message of the user that is its own.
std::optional<std::size_t> BehindUserMessage(const std::vector<Message>& messages, const std::string& text) {
  for (std::size_t i = messages.size(); i > 0; --i) {
    if (messages[i - 1].role == Role::kUser && messages[i - 1].content == text) return i;
  }
  return std::nullopt;
}

std::vector<RecordedCall> CallsOf(const std::vector<Message>& messages, std::size_t calling) {
  std::vector<RecordedCall> calls;
  for (const ToolCall& call : messages[calling].tool_calls) calls.push_back({.call = call});
  for (std::size_t i = calling + 1; i < messages.size() && messages[i].role != Role::kAssistant; ++i) {
    if (messages[i].role != Role::kTool) continue;
    const auto call = std::find_if(calls.begin(), calls.end(), [&](const RecordedCall& each) {
      return each.call.id == messages[i].tool_call_id && !each.outcome;
    });
    if (call != calls.end()) {
      call->outcome = ToolOutcome{.output = messages[i].content.value_or(""), .is_error = messages[i].is_error};
    }
  }
  return calls;
}

RecordedCall* CallOf(RecordedRound& round, const std::string& id) {
  const auto call = std::find_if(round.calls.begin(), round.calls.end(),
                                 [&](const RecordedCall& each) { return each.call.id == id; });
  return call == round.calls.end() ? nullptr : &*call;
}

// Whether a hook has put these arguments in place of the model's: the result says so, if there is one.
bool HookChanged(const RecordedCall& call, const std::string& shown) {
  if (shown == call.call.arguments) return false;
  return !call.outcome || call.outcome->output == kCancelledResult || call.outcome->output == kOutcomeUnknown ||
         call.outcome->output.starts_with(ChangedByHook(shown));
}

// What `event`, the one at `at`, tells of its round.
void Note(RecordedRound& round, const EventPayload& payload, std::size_t at) {
  const auto about = [&](const std::string& id, auto set) {
    if (RecordedCall* call = CallOf(round, id)) set(*call);
  };
  const auto step = [&](const std::string& id) {
    about(id, [&](RecordedCall& call) { call.steps.push_back({at, payload}); });
  };
  if (const auto* retry = std::get_if<event::Retry>(&payload)) round.retries.push_back(*retry);
  if (const auto* thinking = std::get_if<event::Thinking>(&payload)) round.thinking = thinking->content;
  if (const auto* usage = std::get_if<event::Usage>(&payload)) round.usage = usage->tokens;
  if (std::holds_alternative<event::Compacted>(payload)) round.usage = {};  // what came before was the summary's
  if (const auto* answer = std::get_if<event::Answer>(&payload)) {
    round.complete = true;
    round.truncated = answer->reason;
  }
  if (const auto* asked = std::get_if<event::ApprovalRequired>(&payload)) {
    about(asked->call_id, [&](RecordedCall& call) {
      call.asked = *asked;
      call.withdrawn = false;
      if (HookChanged(call, asked->tool_input)) call.changed = asked->tool_input;
    });
  }
  if (const auto* approved = std::get_if<event::Approved>(&payload)) {
    about(approved->call_id, [&](RecordedCall& call) { call.approved = *approved; });
  }
  if (const auto* rejected = std::get_if<event::Rejected>(&payload)) {
    about(rejected->call_id, [&](RecordedCall& call) {
      if (rejected->superseded) {
        call.approved.reset();
        call.withdrawn = true;
      } else {
        call.rejected = *rejected;
      }
    });
  }
  if (const auto* started = std::get_if<event::ToolCallStarted>(&payload)) {
    about(started->id, [&](RecordedCall& call) {
      call.started = true;
      if (!call.asked && HookChanged(call, started->tool_input)) call.changed = started->tool_input;
      for (RecordedCall& other : round.calls) {
        if (&other == &call || !other.started || other.ended()) continue;
        call.beside_another = other.beside_another = true;
      }
    });
  }
  if (const auto* asked = std::get_if<event::InputRequired>(&payload)) step(asked->call_id);
  if (const auto* answered = std::get_if<event::InputReceived>(&payload)) step(answered->call_id);
  if (const auto* tasks = std::get_if<event::TaskUpdated>(&payload)) step(tasks->call_id.value_or(""));
  if (const auto* plan = std::get_if<event::PlanUpdated>(&payload)) step(plan->call_id.value_or(""));
  if (const auto* result = std::get_if<event::ToolResult>(&payload)) {
    about(result->id, [at](RecordedCall& call) { call.result_at = at; });
  }
}

// What the agenda may have been before these events: only a change is shown.
Agenda AgendaBefore(const std::vector<AgentEvent>& events, const Agenda& last) {
  const event::TaskUpdated* tasks = nullptr;
  const event::PlanUpdated* plan = nullptr;
  for (const AgentEvent& event : events) {
    if (tasks == nullptr) tasks = std::get_if<event::TaskUpdated>(&event.payload);
    if (plan == nullptr) plan = std::get_if<event::PlanUpdated>(&event.payload);
  }
  Agenda before = last;
  if (tasks != nullptr) before.tasks.assign(tasks->tasks.empty() ? 1 : 0, Task{.id = "", .title = "another"});
  if (plan != nullptr) before.plan.assign(plan->steps.empty() ? 1 : 0, "another");
  return before;
}

}  // namespace

bool RecordedCall::stopped_before() const {
  return ended() && !started && outcome && outcome->is_error && outcome->output == kCancelledResult;
}

bool RecordedCall::changed_agenda() const {
  return std::any_of(steps.begin(), steps.end(), [](const RecordedStep& step) {
    return std::holds_alternative<event::TaskUpdated>(step.payload) ||
           std::holds_alternative<event::PlanUpdated>(step.payload);
  });
}

bool RecordedCall::was_refused() const { return ended() && outcome && outcome->output == kRefusedResult; }

bool Recording::cut_off() const {
  if (last_words.empty()) return false;
  const auto* failed = std::get_if<event::Failed>(&last_words.front().payload);
  return failed != nullptr && failed->code == "interrupted";
}

Result<void> CheckReplayable(const Interaction& interaction) {
  if (!IsFinished(interaction.status)) return Fail(NotReplayable("the interaction has not come to its end yet"));
  if (!interaction.final_agent_state) return Fail(NotReplayable("the interaction has no final state"));
  const bool says_its_end = interaction.status == InteractionStatus::kCompleted ||
                            (!interaction.events.empty() && IsLastWord(interaction.events.back()));
  if (!says_its_end) return Fail(NotReplayable("its events do not say how it ended: it was not recorded here"));
  if (interaction.events.empty()) return Fail(NotReplayable("the interaction has no events: it was not recorded here"));
  return {};
}

Result<Recording> Recording::Of(const Interaction& interaction) {
  const std::vector<Message>& messages = interaction.final_agent_state->messages;
  const auto begin = BehindUserMessage(messages, interaction.user_message + AttachedTo(interaction).text);
  if (!begin) return Fail(NotReplayable("the final state does not have the interaction's own message"));

  Recording recording;
  recording.status = interaction.status;
  recording.events = interaction.events;
  while (!recording.events.empty() && IsLastWord(recording.events.back())) {
    recording.last_words.insert(recording.last_words.begin(), std::move(recording.events.back()));
    recording.events.pop_back();
  }
  const std::vector<AgentEvent>& events = recording.events;

  std::vector<std::uint32_t> responses;  // the rounds with one
  for (const AgentEvent& event : events) {
    if (!ShowsResponse(event.payload)) continue;
    if (responses.empty() || responses.back() != event.round_index) responses.push_back(event.round_index);
  }
  std::vector<std::size_t> said;  // where in `messages`
  for (std::size_t i = *begin; i < messages.size(); ++i) {
    if (messages[i].role == Role::kAssistant) said.push_back(i);
  }
  // What was said last and never shown: the process ended just then.
  if (recording.cut_off() && !said.empty() && !messages[said.back()].tool_calls.empty()) {
    const std::vector<ToolCall>& calls = messages[said.back()].tool_calls;
    const bool shown = !responses.empty() && std::any_of(events.begin(), events.end(), [&](const AgentEvent& event) {
      if (event.round_index != responses.back()) return false;
      const auto* text = std::get_if<event::MessageText>(&event.payload);
      if (text != nullptr) return messages[said.back()].content == text->content;
      const auto* call = std::get_if<event::ToolCallStarted>(&event.payload);
      const auto* asked = std::get_if<event::ApprovalRequired>(&event.payload);
      return std::any_of(calls.begin(), calls.end(), [&](const ToolCall& each) {
        return (call && call->id == each.id) || (asked && asked->call_id == each.id);
      });
    });
    if (!shown) said.pop_back();
  }
  // An interaction that goes on where another one stopped has what that one said in its state.
  if (interaction.edited_from && said.size() > responses.size()) {
    said.erase(said.begin(), said.end() - static_cast<std::ptrdiff_t>(responses.size()));
  }

  std::size_t start = *begin;
  if (interaction.edited_from) start = said.empty() ? messages.size() : said.front();
  for (std::size_t i = 0; i < responses.size() && i < said.size(); ++i) {
    RecordedRound& round = recording.rounds[responses[i]];
    round.message = messages[said[i]];
    round.calls = CallsOf(messages, said[i]);
    round.complete = !round.message->tool_calls.empty();
  }
  for (std::size_t at = 0; at < events.size(); ++at) {
    Note(recording.rounds[events[at].round_index], events[at].payload, at);
  }

  // It began with the calls that were left of the round before.
  if (interaction.edited_from && !responses.empty() && !said.empty() && responses.front() == 0) {
    RecordedRound& round = recording.rounds[0];
    const bool text_shown = round.message->content.value_or("").empty() || ShowsText(events, 0);
    const bool all_ended = std::all_of(round.calls.begin(), round.calls.end(),
                                       [&](const RecordedCall& each) { return HasResult(events, 0, each.call.id); });
    // Calls come in their order: one that was passed over had its result before.
    const auto untouched = [](const RecordedCall& each) { return !each.ended() && !each.started && !each.asked; };
    const auto first = std::find_if(round.calls.begin(), round.calls.end(), untouched);
    const bool passed_over = !std::all_of(first, round.calls.end(), untouched);
    if (!round.calls.empty() && (!text_shown || passed_over || (!all_ended && !recording.cut_off()))) {
      std::erase_if(round.calls, untouched);
      Interrupted continued;
      for (const RecordedCall& each : round.calls) continued.calls.push_back({.call = each.call});
      recording.continued = std::move(continued);
      ++start;
      while (start < messages.size() && messages[start].role == Role::kTool &&
             CallOf(round, messages[start].tool_call_id) == nullptr) {
        ++start;
      }
    }
  }
  recording.end.agenda = interaction.final_agent_state->agenda;
  recording.end.compaction = interaction.final_agent_state->compaction;
  recording.start.messages.assign(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(start));
  recording.start.agenda = AgendaBefore(events, recording.end.agenda);

  recording.limits.check_confirmations = false;
  recording.limits.max_said = std::numeric_limits<std::size_t>::max();
  recording.limits.max_rounds = std::numeric_limits<int>::max();
  recording.limits.retry.max_retries = std::numeric_limits<int>::max();
  for (const auto& [index, round] : recording.rounds) {
    if (std::any_of(round.calls.begin(), round.calls.end(),
                    [](const RecordedCall& each) { return each.was_refused(); })) {
      recording.limits.approval_mode = ApprovalMode::kDenyAll;
    }
  }
  if (!recording.last_words.empty()) {
    const AgentEvent& last = recording.last_words.front();
    const auto* failed = std::get_if<event::Failed>(&last.payload);
    if (failed && failed->code == "max_rounds") {
      recording.limits.max_rounds = static_cast<int>(std::min(last.round_index, kMostRounds)) + 1;
    }
  }
  return recording;
}

}  // namespace reprise
