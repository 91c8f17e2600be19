#include "engine/recording.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <variant>

#include "agent/history.h"
#include "agent/told.h"
#include "approval/decision.h"
#include "base/try.h"
#include "engine/attachments.h"

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

namespace {

tl::unexpected<Error> NotReplayable(std::string message) { return Fail(Reason::kNotReplayable, std::move(message)); }

// These events follow only from a response of the model.
bool ShowsResponse(const EventPayload& payload) {
  return std::holds_alternative<event::Answer>(payload) || std::holds_alternative<event::MessageText>(payload) ||
         std::holds_alternative<event::ApprovalRequired>(payload) ||
         std::holds_alternative<event::ToolCallStarted>(payload) || std::holds_alternative<event::ToolResult>(payload);
}

// Whether the first of these messages of the model was shown in round 0, as it is when a run begins with a request.
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
  return text_shown && (was_cut_off || std::ranges::all_of(said.tool_calls, has_ended));
}

// A possible agenda before these events. Only changes are shown, so any other agenda will do.
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
  // A run that continues another has the other's messages in its state.
  if (said.size() > rounds.size()) {
    record.first_message = rounds.empty() ? messages.size() : said[said.size() - rounds.size()];
  }
  const bool is_whole =
      record.first_message == messages.size() || WasShown(messages[record.first_message], interaction.events);
  if (is_whole || !rounds.contains(0)) return record;
  return NotReplayable("the run went on with calls of another interaction, and its file does not say with which");
}

namespace {

// A file may hold any number.
constexpr std::uint32_t kMostRounds = std::numeric_limits<int>::max() - 1;

bool IsLastWord(const AgentEvent& event) {
  return std::holds_alternative<event::Cancelled>(event.payload) ||
         std::holds_alternative<event::Failed>(event.payload);
}

std::vector<RecordedCall> CallsOf(const Messages& messages, std::size_t calling) {
  std::vector<RecordedCall> calls;
  for (const ToolCall& call : messages[calling].tool_calls) calls.push_back({.call = call});
  for (std::size_t i = calling + 1; i < messages.size() && messages[i].role != Role::kAssistant; ++i) {
    if (messages[i].role != Role::kTool) continue;
    const auto call = std::ranges::find_if(
        calls, [&](const RecordedCall& each) { return each.call.id == messages[i].tool_call_id && !each.outcome; });
    if (call != calls.end()) {
      call->outcome = ToolOutcome{
          .output = messages[i].content.value_or(""), .is_error = messages[i].is_error, .parts = messages[i].parts};
    }
  }
  return calls;
}

RecordedCall* CallOf(RecordedRound& round, const std::string& id) {
  const auto call = std::ranges::find_if(round.calls, [&](const RecordedCall& each) { return each.call.id == id; });
  return call == round.calls.end() ? nullptr : &*call;
}

// Whether a hook substituted these arguments; the result tells, if there is one.
bool HookChanged(const RecordedCall& call, const std::string& shown) {
  if (shown == call.call.arguments) return false;
  return !call.outcome || SaysCancelled(call.outcome->output) || call.outcome->output == kOutcomeUnknown ||
         call.outcome->output.starts_with(ChangedByHook(shown));
}

// The call in whose midst this question about a host, or its answer, came; null if it is none.
const RecordedCall* AsksAboutHost(RecordedRound& round, const EventPayload& payload) {
  const auto of = [&](const std::string& call_id, const std::string& approval_id) -> const RecordedCall* {
    const RecordedCall* call = CallOf(round, call_id);
    if (call == nullptr) return nullptr;
    const bool is_about_host = std::ranges::any_of(call->steps, [&](const RecordedStep& step) {
      const auto* asked = std::get_if<event::ApprovalRequired>(&step.payload);
      return asked != nullptr && asked->approval_id == approval_id;
    });
    return is_about_host ? call : nullptr;
  };
  if (const auto* asked = std::get_if<event::ApprovalRequired>(&payload)) {
    return asked->tool_name == kNetworkTool ? CallOf(round, asked->call_id) : nullptr;
  }
  if (const auto* approved = std::get_if<event::Approved>(&payload))
    return of(approved->call_id, approved->approval_id);
  const auto* rejected = std::get_if<event::Rejected>(&payload);
  return rejected ? of(rejected->call_id, rejected->approval_id) : nullptr;
}

// Adds `event`, at index `at`, to its round.
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
  if (std::holds_alternative<event::Compacted>(payload)) round.usage = {};  // earlier usage was the summary's
  if (const auto* answer = std::get_if<event::Answer>(&payload)) {
    round.complete = true;
    round.truncated = answer->reason;
    round.citations = answer->citations;
  }
  if (const auto* said = std::get_if<event::MessageText>(&payload)) round.citations = said->citations;
  if (const auto* search = std::get_if<event::WebSearch>(&payload)) round.searches.push_back(*search);
  if (const RecordedCall* call = AsksAboutHost(round, payload)) return step(call->call.id);
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
    about(result->id, [&](RecordedCall& call) {
      call.result_at = at;
      // The message may hold the shortened output; otherwise the event and the message differ.
      if (call.outcome && IsToldOutput(result->tool_name, call.outcome->output, result->tool_output)) {
        call.outcome->output = result->tool_output;
      }
    });
  }
}

// The calls of an earlier interaction with which this one began.
Interrupted CallsResumed(const Messages& messages, const RunRecord& record, RecordedRound& round) {
  const auto begin = messages.begin() + static_cast<std::ptrdiff_t>(record.first_message);
  const auto calling = std::find_if(std::make_reverse_iterator(begin), messages.rend(),
                                    [](const Message& message) { return message.role == Role::kAssistant; });
  Interrupted continued;
  if (calling == messages.rend()) return continued;
  const auto& ids = record.resumed_from->call_ids;
  for (RecordedCall& call : CallsOf(messages, static_cast<std::size_t>(messages.rend() - calling) - 1)) {
    if (std::ranges::find(ids, call.call.id) == ids.end()) continue;
    continued.calls.push_back({.call = call.call});
    round.calls.push_back(std::move(call));
  }
  return continued;
}

}  // namespace

bool RecordedCall::stopped_before() const {
  return ended() && !started && outcome && outcome->is_error && SaysCancelled(outcome->output);
}

bool RecordedCall::changed_agenda() const {
  return std::ranges::any_of(steps, [](const RecordedStep& step) {
    return std::holds_alternative<event::TaskUpdated>(step.payload) ||
           std::holds_alternative<event::PlanUpdated>(step.payload);
  });
}

bool RecordedCall::was_refused() const { return ended() && !started && outcome && outcome->output == kRefusedResult; }

namespace {

// Like their other steps, these belong to a tool, and not to the agent that a replay runs.
void DropQuestionsOfSubAgents(std::vector<AgentEvent>& events) {
  std::set<std::string> dropped;
  std::erase_if(events, [&](const AgentEvent& event) {
    if (const auto* asked = std::get_if<event::ApprovalRequired>(&event.payload)) {
      return !asked->agent.empty() && dropped.insert(asked->approval_id).second;
    }
    if (const auto* approved = std::get_if<event::Approved>(&event.payload)) {
      return dropped.contains(approved->approval_id);
    }
    const auto* rejected = std::get_if<event::Rejected>(&event.payload);
    return rejected != nullptr && dropped.contains(rejected->approval_id);
  });
}

}  // namespace

bool Recording::cut_off() const {
  if (last_words.empty()) return false;
  const auto* failed = std::get_if<event::Failed>(&last_words.front().payload);
  return failed != nullptr && failed->code == "interrupted";
}

Result<void> CheckReplayable(const Interaction& interaction) {
  if (!IsFinished(interaction.status)) return NotReplayable("the interaction has not come to its end yet");
  if (!interaction.final_agent_state) return NotReplayable("the interaction has no final state");
  const bool says_its_end = interaction.status == InteractionStatus::kCompleted ||
                            (!interaction.events.empty() && IsLastWord(interaction.events.back()));
  if (!says_its_end) return NotReplayable("its events do not say how it ended: it was not recorded here");
  if (interaction.events.empty()) return NotReplayable("the interaction has no events: it was not recorded here");
  return {};
}

Result<Recording> Recording::Of(const Interaction& interaction) {
  const Messages& messages = interaction.final_agent_state->messages;
  const RunRecord record = interaction.record ? *interaction.record : TRY(DeriveRecord(interaction));
  if (record.first_message > messages.size()) return NotReplayable("its record does not fit its final state");

  Recording recording;
  recording.status = interaction.status;
  recording.events = interaction.events;
  // Changes of files belong to the workspace, which a replay does not touch, background jobs do not run again, and
  // nobody speaks.
  std::erase_if(recording.events, [](const AgentEvent& event) {
    return std::holds_alternative<event::Sound>(event.payload) ||
           std::holds_alternative<event::FilesChanged>(event.payload) ||
           std::holds_alternative<event::JobStarted>(event.payload) ||
           std::holds_alternative<event::JobEnded>(event.payload);
  });
  DropQuestionsOfSubAgents(recording.events);
  while (!recording.events.empty() && IsLastWord(recording.events.back())) {
    recording.last_words.insert(recording.last_words.begin(), std::move(recording.events.back()));
    recording.events.pop_back();
  }
  // Earlier versions imported what was said before a person stopped it as an answer.
  const bool was_stopped = interaction.imported && interaction.status == InteractionStatus::kCancelled;
  for (AgentEvent& event : recording.events) {
    const auto* answer = was_stopped ? std::get_if<event::Answer>(&event.payload) : nullptr;
    if (answer != nullptr) event.payload = event::MessageText{.content = std::string(answer->content)};
  }

  std::uint32_t round_index = 0;
  const bool has_begun = !recording.events.empty();  // a hook or a stop may have come first
  if (has_begun && record.resumed_from && !record.resumed_from->call_ids.empty()) {
    recording.continued = CallsResumed(messages, record, recording.rounds[round_index++]);
  }
  for (std::size_t i = record.first_message; i < messages.size(); ++i) {
    if (messages[i].role != Role::kAssistant) continue;
    RecordedRound& round = recording.rounds[round_index++];
    round.message = messages[i];
    round.calls = CallsOf(messages, i);
    const bool is_sent_back =
        i + 1 < messages.size() && messages[i + 1].content.value_or("").starts_with(kSentBackIntro);
    if (is_sent_back) round.sent_back = messages[i + 1].content->substr(kSentBackIntro.size());
    round.complete = !round.calls.empty() || is_sent_back;
  }
  for (std::size_t at = 0; at < recording.events.size(); ++at) {
    Note(recording.rounds[recording.events[at].round_index], recording.events[at].payload, at);
  }
  std::uint32_t last_round = 0;
  for (const auto* events : {&recording.events, &recording.last_words}) {
    for (const AgentEvent& event : *events) last_round = std::max(last_round, event.round_index);
  }
  for (auto& [index, round] : recording.rounds) {
    // It was neither an answer nor had calls, and the agent went on.
    if (round.message && !round.complete && index < last_round) round.pauses = round.complete = true;
  }
  recording.end.agenda = interaction.final_agent_state->agenda;
  recording.end.compaction = interaction.final_agent_state->compaction;
  recording.end.cleared = interaction.final_agent_state->cleared;
  recording.start.messages = messages;
  recording.start.messages.Truncate(record.first_message);
  recording.start.agenda = record.agenda_before.value_or(recording.end.agenda);

  recording.limits.check_confirmations = false;
  recording.limits.max_said = std::numeric_limits<std::size_t>::max();
  recording.limits.find_standstills = std::ranges::any_of(recording.events, [](const AgentEvent& event) {
    const auto* loop = std::get_if<event::LoopDetected>(&event.payload);
    return loop != nullptr && (loop->pattern == "same_error" || loop->pattern == "no_progress");
  });
  recording.limits.max_rounds = std::numeric_limits<int>::max();
  recording.limits.max_sent_back = std::numeric_limits<int>::max();
  recording.limits.retry.max_retries = std::numeric_limits<int>::max();
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
