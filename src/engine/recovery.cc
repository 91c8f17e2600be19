#include "engine/recovery.h"

#include <algorithm>
#include <utility>

#include "agent/history.h"

namespace reprise {
namespace {

constexpr std::string_view kNotRun = "The server ended before this call was run.";

// The calls of the last round that have no result.
std::vector<ToolCall> OpenCalls(const std::vector<Message>& messages) {
  std::vector<ToolCall> open;
  const auto calling = std::find_if(messages.rbegin(), messages.rend(),
                                    [](const Message& message) { return message.role == Role::kAssistant; });
  if (calling == messages.rend()) return open;
  for (const ToolCall& call : calling->tool_calls) {
    const bool has_result = std::any_of(calling.base(), messages.end(), [&](const Message& message) {
      return message.role == Role::kTool && message.tool_call_id == call.id;
    });
    if (!has_result) open.push_back(call);
  }
  return open;
}

// The last event of a type that concerns this call in this, the last round.
template <typename T>
const T* LastAbout(const std::vector<AgentEvent>& events, std::uint32_t round, const std::string& call_id,
                   std::string T::*id) {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (event->round_index != round) return nullptr;
    const T* found = std::get_if<T>(&event->payload);
    if (found && found->*id == call_id) return found;
  }
  return nullptr;
}

}  // namespace

void RestoreState(const InterruptedRun& run, AgentState& state) {
  state.messages.push_back(Message{.role = Role::kUser, .content = run.interaction.user_message});
  state.messages.insert(state.messages.end(), run.messages.begin(), run.messages.end());
  if (run.grants) state.grants = *run.grants;
  if (run.agenda) state.agenda = *run.agenda;
  if (run.compaction) state.compaction = run.compaction;
}

std::optional<Question> OpenQuestion(const InterruptedRun& run, const AgentState& state) {
  std::vector<ToolCall> calls = OpenCalls(state.messages);
  if (calls.empty()) return std::nullopt;
  const std::string& id = calls.front().id;
  const auto last = [&](auto call_id) { return LastAbout(run.interaction.events, run.last_round, id, call_id); };
  if (const auto* asked = last(&event::InputRequired::call_id)) {
    if (last(&event::InputReceived::call_id)) return std::nullopt;
    if (const auto* started = last(&event::ToolCallStarted::id)) calls.front().arguments = started->tool_input;
    return Question{.request = *asked, .calls = std::move(calls)};
  }
  const auto* asked = last(&event::ApprovalRequired::call_id);
  const bool answered = last(&event::Approved::call_id) || last(&event::Rejected::call_id);
  if (asked == nullptr || answered) return std::nullopt;
  calls.front().arguments = asked->tool_input;  // a hook may have changed them: what was shown is what runs
  return Question{.request = *asked, .calls = std::move(calls)};
}

AgentLoop::Interrupted WhereToResume(AgentState& state, const ToolSet& tools) {
  auto& messages = state.messages;
  if (!messages.empty() && messages.back().role == Role::kAssistant && messages.back().tool_calls.empty()) {
    messages.pop_back();
  }
  const auto calling = std::find_if(messages.rbegin(), messages.rend(),
                                    [](const Message& message) { return message.role != Role::kTool; });
  AgentLoop::Interrupted where;
  if (calling == messages.rend()) return where;
  for (const ToolCall& call : calling->tool_calls) {
    const Tool* tool = tools.Find(call.name);
    if (tool == nullptr || !tool->traits().idempotent) continue;
    const auto unknown = std::find_if(calling.base(), messages.end(), [&](const Message& message) {
      return message.tool_call_id == call.id && message.content == kOutcomeUnknown;
    });
    if (unknown == messages.end()) continue;
    where.calls.push_back(call);
  }
  for (const ToolCall& call : where.calls) {
    std::erase_if(messages, [&](const Message& message) {
      return message.role == Role::kTool && message.tool_call_id == call.id && message.content == kOutcomeUnknown;
    });
  }
  return where;
}

Interaction EndInterrupted(InterruptedRun run, AgentState state) {
  Interaction ended = std::move(run.interaction);
  const Timestamp now = Now();
  const auto add = [&](EventPayload payload) {
    ended.events.push_back(
        {.seq = ++run.last_seq, .round_index = run.last_round, .at = now, .payload = std::move(payload)});
  };
  if (!run.thinking.empty()) add(event::Thinking{std::move(run.thinking)});
  if (!run.text.empty()) {
    state.messages.push_back(Message{.role = Role::kAssistant, .content = run.text});
    add(event::MessageText{std::move(run.text)});
  }
  for (const ToolCall& call : OpenCalls(state.messages)) {
    if (!LastAbout(ended.events, run.last_round, call.id, &event::ToolCallStarted::id)) continue;
    Message result{
        .role = Role::kTool, .content = std::string(kOutcomeUnknown), .tool_calls = {}, .tool_call_id = call.id};
    result.name = call.name;
    result.is_error = true;
    state.messages.push_back(std::move(result));
    add(event::ToolResult{call.id, call.name, std::string(kOutcomeUnknown), true});
  }
  CompleteToolCalls(state.messages, kNotRun);
  ended.error = InteractionError{
      .code = "interrupted", .message = "the server ended while this interaction ran", .retryable = true};
  add(event::Failed{ended.error->code, ended.error->message, ended.error->retryable});
  ended.status = InteractionStatus::kFailed;
  ended.final_agent_state = std::move(state);
  ended.completed_at = now;
  return ended;
}

}  // namespace reprise
