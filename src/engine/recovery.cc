#include "engine/recovery.h"

#include <algorithm>
#include <utility>

#include "agent/history.h"
#include "approval/decision.h"

namespace reprise {
namespace {

constexpr std::string_view kNotRun = "The server ended before this call was run.";

// The calls of the last round that have no result.
std::vector<ToolCall> OpenCalls(const Messages& messages) {
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

// The last event of type T about this call, or this question, in `round`, the last one. Not about a host.
template <typename T>
const T* LastAbout(const std::vector<AgentEvent>& events, std::uint32_t round, const std::string& wanted,
                   std::string T::*id) {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (event->round_index != round) return nullptr;
    const T* found = std::get_if<T>(&event->payload);
    if (!found || found->*id != wanted) continue;
    if constexpr (std::is_same_v<T, event::ApprovalRequired>) {
      if (found->tool_name == kNetworkTool) continue;
    }
    return found;
  }
  return nullptr;
}

bool HasPartialAnswer(const Messages& messages) {
  return !messages.empty() && messages.back().role == Role::kAssistant && messages.back().tool_calls.empty();
}

bool IsUnknownOutcome(const Message& message, const std::string& call_id) {
  return message.role == Role::kTool && message.tool_call_id == call_id && message.content == kOutcomeUnknown;
}

// The message whose calls end the state, or the end.
Messages::Iterator LastCalling(const Messages& messages) {
  auto last = messages.end();
  if (HasPartialAnswer(messages)) --last;
  while (last != messages.begin() && (last - 1)->role == Role::kTool) --last;
  const bool calls = last != messages.begin() && !(last - 1)->tool_calls.empty();
  return calls ? last - 1 : messages.end();
}

std::optional<ApprovalAnswer> AnswerOf(const event::Approved* approved, const event::Rejected* rejected) {
  // A person's word to leave the sandbox ends with the process that took it.
  if (approved != nullptr && approved->outside_sandbox) return kSuperseded;
  if (approved != nullptr) {
    return ApprovalAnswer{.approved = true,
                          .arguments = approved->tool_input,
                          .feedback = approved->feedback,
                          .mode = ParseApprovalMode(approved->mode),
                          .answered_by = approved->answered_by};
  }
  if (rejected != nullptr) {
    return ApprovalAnswer{.approved = false,
                          .feedback = rejected->feedback,
                          .expired = rejected->expired,
                          .superseded = rejected->superseded,
                          .answered_by = rejected->answered_by};
  }
  return std::nullopt;
}

}  // namespace

void RestoreState(InterruptedRun& run, AgentState& state) {
  if (run.record.resumed_from) {
    PrepareToResume(state, run.record.resumed_from->call_ids);
  } else {
    state.messages.push_back(Message{
        .role = Role::kUser, .content = run.interaction.user_message + run.attached_text, .parts = run.attached_parts});
  }
  run.record.first_message = state.messages.size();
  state.messages.Append(run.messages);
  if (run.grants) state.grants = *run.grants;
  if (run.agenda && *run.agenda != state.agenda) run.record.agenda_before = std::exchange(state.agenda, *run.agenda);
  if (run.compaction) state.compaction = run.compaction;
  if (run.cleared) state.cleared = *run.cleared;
  if (run.memory) state.memory = *run.memory;
  if (run.jobs) state.jobs = *run.jobs;
  if (run.marks) state.request = run.marks;
}

std::optional<OpenQuestions> FindOpenQuestions(const InterruptedRun& run, const AgentState& state,
                                               const ToolSet& tools) {
  OpenQuestions questions;
  questions.where.round_index = run.last_round;
  questions.where.usage = run.unshown_usage;
  for (ToolCall& call : OpenCalls(state.messages)) {
    const std::string id = call.id;
    const auto& events = run.interaction.events;
    const auto last = [&](auto call_id) { return LastAbout(events, run.last_round, id, call_id); };
    const Tool* tool = tools.Find(call.name);
    OpenCall& open = questions.where.calls.emplace_back(OpenCall{.call = std::move(call)});
    if (const auto* asked = last(&event::ApprovalRequired::call_id)) {
      open.approval_id = asked->approval_id;
      open.terms_digest = asked->terms_digest;
      open.patterns = asked->patterns;
      open.call.arguments = asked->tool_input;  // a hook may have changed them; the shown arguments are those that run
      const std::string& question = asked->approval_id;
      open.answer = AnswerOf(LastAbout(events, run.last_round, question, &event::Approved::approval_id),
                             LastAbout(events, run.last_round, question, &event::Rejected::approval_id));
      if (!open.answer) questions.approvals.push_back(*asked);
    }
    const auto* started = last(&event::ToolCallStarted::id);
    if (!started) continue;
    if (open.approval_id.empty()) open.call.arguments = started->tool_input;
    const auto* input = last(&event::InputRequired::call_id);
    const bool waits = input && !last(&event::InputReceived::call_id) && tool && tool->traits().only_asks;
    if (waits && questions.where.calls.size() == 1) {
      open.has_asked = true;
      questions.input = *input;
    } else {
      open.outcome = ToolOutcome{.output = std::string(kOutcomeUnknown), .is_error = true};
    }
  }
  if (questions.approvals.empty() && !questions.input) return std::nullopt;
  return questions;
}

Interrupted WhereToResume(const AgentState& state, const ToolSet& tools) {
  Interrupted where;
  const auto calling = LastCalling(state.messages);
  if (calling == state.messages.end()) return where;
  for (const ToolCall& call : calling->tool_calls) {
    const Tool* tool = tools.Find(call.name);
    if (tool == nullptr || !tool->IsIdempotent(call.arguments)) continue;
    const bool unknown = std::any_of(calling, state.messages.end(),
                                     [&](const Message& message) { return IsUnknownOutcome(message, call.id); });
    if (unknown) where.calls.push_back({.call = call});
  }
  return where;
}

void PrepareToResume(AgentState& state, const std::vector<std::string>& call_ids) {
  state.request.reset();  // of an interaction that is no ancestor of this one
  auto& messages = state.messages;
  if (HasPartialAnswer(messages)) messages.pop_back();
  const auto calling = LastCalling(messages);
  std::vector<Message> results(calling, messages.end());
  std::erase_if(results, [&](const Message& message) {
    return std::ranges::any_of(call_ids, [&](const std::string& id) { return IsUnknownOutcome(message, id); });
  });
  messages.Truncate(static_cast<std::size_t>(calling - messages.begin()));
  messages.Append(std::move(results));
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
  ended.record = std::move(run.record);
  ended.completed_at = now;
  return ended;
}

}  // namespace reprise
