#include "engine/what_if.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "agent/history.h"
#include "agent/told.h"
#include "approval/decision.h"
#include "base/try.h"
#include "domain/codec.h"
#include "engine/recording.h"
#include "engine/run.h"

namespace reprise {
namespace {

constexpr std::string_view kTimedOut = "The call timed out. It was ended, and what it did until then is not known.";
constexpr std::string_view kFailed = "The call failed.";

tl::unexpected<Error> Unfit(std::string message) { return Fail(ErrorCode::kInvalidArgument, std::move(message)); }

// These events follow only from a response of the model.
bool ShowsAnswer(const EventPayload& payload) {
  return std::holds_alternative<event::Answer>(payload) || std::holds_alternative<event::MessageText>(payload) ||
         std::holds_alternative<event::ApprovalRequired>(payload) ||
         std::holds_alternative<event::ToolCallStarted>(payload) || std::holds_alternative<event::ToolResult>(payload);
}

// The call of the agent itself that the event is about; empty: none.
std::string CallOf(const EventPayload& payload) {
  return std::visit(
      [](const auto& event) -> std::string {
        if constexpr (std::is_same_v<decltype(event), const event::ToolCallStarted&> ||
                      std::is_same_v<decltype(event), const event::ToolResult&>) {
          return event.id;
        } else if constexpr (requires { event.call_id.value_or(""); }) {
          return event.call_id.value_or("");
        } else if constexpr (requires { event.call_id; }) {
          return event.call_id;
        } else {
          return {};
        }
      },
      static_cast<const AnyEvent&>(payload));
}

// "3, 8, 12 and 4 more", or why there is none.
std::string Listed(const std::vector<std::uint64_t>& events) {
  constexpr std::size_t kMost = 12;
  if (events.empty()) return "this turn has no such event";
  std::string list = events.size() == 1 ? "here that is event " : "here these are the events ";
  for (std::size_t i = 0; i < std::min(events.size(), kMost); ++i) {
    list += (i == 0 ? "" : ", ") + std::to_string(events[i]);
  }
  return events.size() > kMost ? list + " and " + std::to_string(events.size() - kMost) + " more" : list;
}

// A call of the round in which the record ends.
struct OpenOrEnded {
  ToolCall call;
  bool has_ended = false;
  const event::Approved* approved = nullptr;
};

// A recorded turn, cut at one of its events.
class Cut {
 public:
  Cut(const Interaction& recorded, const Recording& recording, const WhatIfChanges& changes)
      : recorded_(recorded), recording_(recording), changes_(changes) {}

  // Finds the event. kInvalidArgument: there is none, or `changes` do not fit it.
  Result<void> Find();
  // Makes the state and the events with which the run goes on.
  Result<void> MakeStart(LiveTurn& turn, RequestBodies& bodies) const;
  // Puts the requests of the run on record, after those before the event.
  Result<void> KeepRequests(LiveTurn& turn, RequestBodies& bodies) const;

 private:
  bool WasSent(const SentRequest& request) const;
  bool IsAnswered() const;
  Result<void> CheckFits() const;
  Result<void> CheckCallFits() const;
  std::vector<std::uint64_t> EventsWith(bool (*fits)(const EventPayload&)) const;
  std::vector<std::uint64_t> EventsToSpeakAt() const;
  std::vector<std::uint64_t> EventsThatFit() const;
  std::vector<OpenOrEnded> CallsOfRound(const Message& message) const;
  std::optional<std::pair<std::string, ToolOutcome>> Replaced() const;
  std::vector<AgentEvent> EventsBefore(const std::vector<OpenOrEnded>& calls) const;
  bool IsKept(const AgentEvent& event, std::size_t index, const std::vector<OpenOrEnded>& calls) const;
  void Show(std::vector<AgentEvent>& events, EventPayload payload) const;
  Result<void> SayInPlace(LiveTurn& turn) const;

  std::uint64_t seq() const { return event_ == nullptr ? 0 : event_->seq; }
  std::uint32_t round() const { return event_ == nullptr ? 0 : event_->round_index; }
  std::string Place() const {
    return "event " + std::to_string(*changes_.at) + " (" +
           (event_ == nullptr ? "the turn's beginning" : std::string(EventName(event_->payload))) + ")";
  }

  const Interaction& recorded_;
  const Recording& recording_;
  const WhatIfChanges& changes_;
  const AgentEvent* event_ = nullptr;  // null: the turn begins anew
  bool answered_ = false;              // the model's answer in the event's round came before
};

Result<void> Cut::Find() {
  if (changes_.result && changes_.fail) return Unfit("a call either has a result or fails, not both");
  if (changes_.at && *changes_.at != 1) {
    const auto found = std::ranges::find(recorded_.events, *changes_.at, &AgentEvent::seq);
    if (found == recorded_.events.end()) {
      const std::uint64_t last = recorded_.events.empty() ? 1 : recorded_.events.back().seq;
      return Unfit("this turn has no event " + std::to_string(*changes_.at) + " on record: they go from 1 to " +
                   std::to_string(last) +
                   ", and some numbers were those of text under way (`reprise replay CHAT/INTERACTION --mode events` " +
                   "lists them); " + Listed(EventsThatFit()));
    }
    event_ = &*found;
    answered_ = IsAnswered();
  }
  return CheckFits();
}

bool Cut::IsAnswered() const {
  const auto known = recording_.rounds.find(round());
  const bool is_whole = known != recording_.rounds.end() && known->second.message && known->second.complete;
  if (!is_whole || (round() == 0 && recording_.continued)) return false;
  return std::ranges::any_of(recorded_.events, [&](const AgentEvent& each) {
    return each.seq <= seq() && each.round_index == round() && ShowsAnswer(each.payload);
  });
}

std::vector<std::uint64_t> Cut::EventsWith(bool (*fits)(const EventPayload&)) const {
  std::vector<std::uint64_t> events;
  for (const AgentEvent& each : recorded_.events) {
    if (fits(each.payload)) events.push_back(each.seq);
  }
  return events;
}

// The last result of each round, and the answer.
std::vector<std::uint64_t> Cut::EventsToSpeakAt() const {
  std::map<std::uint32_t, std::uint64_t> last;
  for (const AgentEvent& each : recorded_.events) {
    const bool ends =
        std::holds_alternative<event::ToolResult>(each.payload) || std::holds_alternative<event::Answer>(each.payload);
    if (ends) last[each.round_index] = each.seq;
  }
  std::vector<std::uint64_t> events;
  for (const auto& [round, seq] : last) events.push_back(seq);
  return events;
}

bool IsOfCall(const EventPayload& payload) {
  return std::holds_alternative<event::ToolCallStarted>(payload) || std::holds_alternative<event::ToolResult>(payload);
}

bool AsksAboutCall(const EventPayload& payload) {
  const auto* const asked = std::get_if<event::ApprovalRequired>(&payload);
  return asked != nullptr && asked->agent.empty() && asked->tool_name != kNetworkTool;
}

// Those at which the changes can be made.
std::vector<std::uint64_t> Cut::EventsThatFit() const {
  if (changes_.result || changes_.fail) return EventsWith(IsOfCall);
  if (changes_.answer) return EventsWith(AsksAboutCall);
  if (changes_.say) return EventsToSpeakAt();
  return EventsWith([](const EventPayload&) { return true; });
}

Result<void> Cut::CheckCallFits() const {
  const auto fits = [&](bool (*is_it)(const EventPayload&)) {
    return answered_ && event_ != nullptr && is_it(event_->payload);
  };
  if ((changes_.result || changes_.fail) && !fits(IsOfCall)) {
    return Unfit(
        "a result or a failure takes the place of that of a call, so it needs the event of a call or its "
        "result; " +
        (changes_.at ? Place() + " is neither" : std::string("no event is given")) + "; " +
        Listed(EventsWith(IsOfCall)));
  }
  if (changes_.answer && !fits(AsksAboutCall)) {
    return Unfit("an answer needs the event of an approval that waits; " +
                 (changes_.at ? Place() + " is none" : std::string("no event is given")) + "; " +
                 Listed(EventsWith(AsksAboutCall)));
  }
  return {};
}

Result<void> Cut::CheckFits() const {
  TRY(CheckCallFits());
  if (!answered_) return {};
  const Message& message = *recording_.rounds.at(round()).message;
  const auto calls = CallsOfRound(message);
  const bool all_ended = std::ranges::all_of(calls, &OpenOrEnded::has_ended);
  if (changes_.say && !all_ended) {
    return Unfit("a message cannot come between a call and its result, as at " + Place() +
                 "; it can follow the last result of a round or the answer: " + Listed(EventsToSpeakAt()));
  }
  if (changes_.say && changes_.keep) {
    return Unfit("a turn has one message, so a run with a further one cannot be kept; send it to the chat instead");
  }
  const RecordedRound& round = recording_.rounds.at(this->round());
  const bool is_over = message.tool_calls.empty() && !round.sent_back && !round.pauses;
  if (is_over && !changes_.say) {
    return Unfit("the turn ends with the answer at " + Place() +
                 ", so nothing follows it; name an earlier event, or a message that follows");
  }
  return {};
}

std::vector<OpenOrEnded> Cut::CallsOfRound(const Message& message) const {
  std::vector<OpenOrEnded> calls;
  for (const ToolCall& call : message.tool_calls) calls.push_back({.call = call});
  const auto find = [&](const std::string& id) {
    return std::ranges::find_if(calls, [&](const OpenOrEnded& each) { return each.call.id == id; });
  };
  for (const AgentEvent& each : recorded_.events) {
    if (each.round_index != round() || each.seq > seq()) continue;
    const auto call = find(CallOf(each.payload));
    if (call == calls.end()) continue;
    if (std::holds_alternative<event::ToolResult>(each.payload)) call->has_ended = true;
    if (const auto* rejected = std::get_if<event::Rejected>(&each.payload)) {
      if (!rejected->superseded) call->has_ended = true;  // its result follows from the answer
      if (rejected->superseded) call->approved = nullptr;
    }
    if (const auto* approved = std::get_if<event::Approved>(&each.payload)) {
      call->approved = approved;
      if (approved->tool_input) call->call.arguments = *approved->tool_input;
    }
  }
  if (const auto replaced = Replaced()) {
    if (const auto call = find(replaced->first); call != calls.end()) call->has_ended = true;
  }
  return calls;
}

// The call whose result is another one than on record.
std::optional<std::pair<std::string, ToolOutcome>> Cut::Replaced() const {
  if (event_ == nullptr) return std::nullopt;
  const std::string call = CallOf(event_->payload);
  if (changes_.result) return std::pair(call, ToolOutcome{.output = *changes_.result});
  if (changes_.fail) {
    const auto text = *changes_.fail == WhatIfChanges::Failure::kTimeout ? kTimedOut : kFailed;
    return std::pair(call, ToolOutcome{.output = std::string(text), .is_error = true});
  }
  if (changes_.answer == false) {
    return std::pair(call, ToolOutcome{.output = RejectedResult({.approved = false}), .is_error = true});
  }
  return std::nullopt;
}

// Whether an event up to the cut belongs to what the run begins with.
bool Cut::IsKept(const AgentEvent& event, std::size_t index, const std::vector<OpenOrEnded>& calls) const {
  const EventPayload& payload = event.payload;
  if (event.round_index != round() || event_ == nullptr) return event.round_index < round();
  if (std::holds_alternative<event::Cancelled>(payload) || std::holds_alternative<event::Failed>(payload)) return false;
  if (!answered_) {  // the model is asked anew, with what was summed up before
    const bool before_summary = index + 1 < recorded_.events.size() &&
                                std::holds_alternative<event::Compacted>(recorded_.events[index + 1].payload);
    return std::holds_alternative<event::Compacted>(payload) || std::holds_alternative<event::JobEnded>(payload) ||
           (std::holds_alternative<event::Usage>(payload) && before_summary);
  }
  const std::string id = CallOf(payload);
  const auto replaced = Replaced();
  if (replaced && replaced->first == id && std::holds_alternative<event::ToolResult>(payload)) return false;
  const auto call =
      std::ranges::find_if(calls, [&](const OpenOrEnded& each) { return each.call.id == id && !each.has_ended; });
  if (call == calls.end()) return true;
  // The call begins again. A person's answer to it still counts.
  const bool is_about_answer =
      std::holds_alternative<event::ApprovalRequired>(payload) || std::holds_alternative<event::Approved>(payload);
  const bool is_answered = call->approved != nullptr || (changes_.answer == true && CallOf(event_->payload) == id);
  return is_about_answer && is_answered;
}

void Cut::Show(std::vector<AgentEvent>& events, EventPayload payload) const {
  const std::uint64_t last = events.empty() ? 1 : events.back().seq;
  events.push_back({.seq = last + 1, .round_index = round(), .at = Now(), .payload = std::move(payload)});
}

std::vector<AgentEvent> Cut::EventsBefore(const std::vector<OpenOrEnded>& calls) const {
  std::vector<AgentEvent> events;
  std::set<std::string> rejected;
  for (std::size_t i = 0; i < recorded_.events.size(); ++i) {
    const AgentEvent& event = recorded_.events[i];
    if (event.seq <= seq() && IsKept(event, i, calls)) {
      events.push_back(event);
      const auto* const answer = std::get_if<event::Rejected>(&event.payload);
      if (answer != nullptr && event.round_index == round() && !answer->superseded) rejected.insert(answer->call_id);
    } else if (event.seq > seq() && std::holds_alternative<event::ToolResult>(event.payload) &&
               event.round_index == round() && rejected.contains(CallOf(event.payload))) {
      events.push_back(event);
    }
  }
  const auto* const asked = event_ ? std::get_if<event::ApprovalRequired>(&event_->payload) : nullptr;
  if (changes_.answer == true) {
    Show(events, event::Approved{asked->approval_id, asked->call_id, ArgumentsDigest(asked->tool_input),
                                 std::string(ToString(ApprovalScope::kOnce)), std::nullopt});
  }
  if (changes_.answer == false) Show(events, event::Rejected{asked->approval_id, asked->call_id, std::nullopt});
  if (const auto replaced = Replaced()) {
    const auto call =
        std::ranges::find_if(calls, [&](const OpenOrEnded& each) { return each.call.id == replaced->first; });
    Show(events, event::ToolResult{replaced->first,
                                   call == calls.end() ? "" : call->call.name,
                                   replaced->second.output,
                                   replaced->second.is_error,
                                   {}});
  }
  return events;
}

// The new message has the files of the recorded one.
Result<void> Cut::SayInPlace(LiveTurn& turn) const {
  Messages& messages = turn.start.state.messages;
  for (std::size_t i = messages.size(); i-- > 0;) {
    if (!IsOfPerson(messages[i])) continue;
    const std::string text = messages[i].content.value_or("");
    if (!text.starts_with(recorded_.user_message)) break;
    messages.Change(i).content = *changes_.say + text.substr(recorded_.user_message.size());
    turn.like.user_message = *changes_.say;
    return {};
  }
  return Fail(Reason::kNotReplayable, "the record does not tell what the model was told of the turn's message");
}

// The tasks and the plan after these events.
Agenda AgendaAfter(const Interaction& recorded, const std::vector<AgentEvent>& events) {
  Agenda agenda = recorded.record && recorded.record->agenda_before ? *recorded.record->agenda_before
                                                                    : recorded.final_agent_state->agenda;
  for (const AgentEvent& each : events) {
    if (const auto* tasks = std::get_if<event::TaskUpdated>(&each.payload)) agenda.tasks = tasks->tasks;
    if (const auto* plan = std::get_if<event::PlanUpdated>(&each.payload)) agenda.plan = plan->steps;
  }
  return agenda;
}

Result<void> Cut::MakeStart(LiveTurn& turn, RequestBodies& bodies) const {
  AgentState& state = turn.start.state;
  const std::uint32_t first = recording_.continued ? 1 : 0;
  state = TRY(StateBefore(recorded_, bodies.store(), round()));
  turn.where.round_index = std::max(round(), first);
  if (!answered_) {
    turn.before = EventsBefore({});
    state.agenda = AgendaAfter(recorded_, turn.before);
    const bool is_first = turn.where.round_index == first;
    if (changes_.say && is_first) return SayInPlace(turn);
  } else {
    const Messages& all = recorded_.final_agent_state->messages;
    const std::size_t answer = state.messages.size();
    const auto calls = CallsOfRound(all[answer]);
    const auto replaced = Replaced();
    const bool all_ended = std::ranges::all_of(calls, &OpenOrEnded::has_ended);
    state.messages.push_back(all[answer]);
    for (std::size_t i = answer + 1; i < all.size() && all[i].role != Role::kAssistant; ++i) {
      const auto call =
          std::ranges::find_if(calls, [&](const OpenOrEnded& each) { return each.call.id == all[i].tool_call_id; });
      const bool is_result = all[i].role == Role::kTool && call != calls.end();
      if (is_result ? call->has_ended && !(replaced && replaced->first == call->call.id) : all_ended) {
        state.messages.push_back(all[i]);
      }
    }
    if (replaced) {
      const auto call =
          std::ranges::find_if(calls, [&](const OpenOrEnded& each) { return each.call.id == replaced->first; });
      Message message{.role = Role::kTool, .tool_call_id = replaced->first};
      message.name = call == calls.end() ? std::string() : call->call.name;
      message.content =
          ToldOutput(message.name, replaced->second.output, LimitsOf(turn.agent.options, turn.model).told_bytes);
      message.is_error = replaced->second.is_error;
      state.messages.push_back(std::move(message));
    }
    turn.before = EventsBefore(calls);
    state.agenda = AgendaAfter(recorded_, turn.before);
    for (const OpenOrEnded& each : calls) {
      if (!each.has_ended) turn.where.calls.push_back({.call = each.call});
    }
    if (all_ended) ++turn.where.round_index;
  }
  if (changes_.say) {
    Message message{.role = Role::kUser};
    message.content = *changes_.say;
    state.messages.push_back(std::move(message));
  }
  return {};
}

// Whether the request came before the event.
bool Cut::WasSent(const SentRequest& request) const {
  if (request.round != round() || event_ == nullptr) return request.round < round();
  return request.at <= event_->at && (answered_ || request.purpose == SentRequest::Purpose::kSummary);
}

Result<void> Cut::KeepRequests(LiveTurn& turn, RequestBodies& bodies) const {
  if (!recorded_.record || !recorded_.record->requests) return {};
  const auto& all = *recorded_.record->requests;
  const auto end = std::ranges::find_if_not(all, [&](const SentRequest& each) { return WasSent(each); });
  turn.sent.emplace(all.begin(), end);
  const auto before = TRY(bodies.store().LoadPreviousState(recorded_.chat_id, recorded_.id));
  auto& marks = turn.start.state.request;
  if (before) marks = before->request;
  for (std::size_t i = turn.sent->size(); i-- > 0;) {
    if ((*turn.sent)[i].purpose != SentRequest::Purpose::kTurn) continue;
    const auto body = bodies.Of(recorded_, i);
    if (!body) return turn.sent.reset(), Result<void>();  // it held a file that was deleted since
    const auto earlier =
        std::exchange(marks, ShortenBody(*body, nullptr, recorded_.final_agent_state->messages, bodies.files()).marks);
    marks->place = {recorded_.id, i};
    marks->depth = static_cast<std::uint32_t>(i + 1) + (earlier ? earlier->depth : 0);
    marks->has_files = marks->has_files || (earlier && earlier->has_files);
    break;
  }
  return {};
}

Result<void> CheckEffects(const PresentAgent& agent, const std::vector<std::string>& allowed) {
  const auto tools = agent.workspace.tools.Current();
  for (const std::string& name : allowed) {
    if (name == kWebSearchName) continue;
    const Tool* const tool = tools->Find(name);
    if (tool == nullptr) {
      return Unfit("\"" + name +
                   "\" is no tool here now, so it cannot be allowed to act outside the copy; those of an MCP "
                   "server can be allowed on a running server that is connected to it");
    }
    const WorkspaceCopies* const copies = agent.workspace.copies;
    const bool is_confined = copies != nullptr && copies->PlaceOf(name) != WorkspaceCopies::Place::kNowhere;
    if (is_confined) return Unfit("\"" + name + "\" works in the copy of the workspace and needs no permission");
    if (tool->traits().only_asks || tool->traits().ends_planning || tool->traits().delegates) {
      return Unfit("\"" + name + "\" belongs to the chat, and this run is not part of it");
    }
  }
  return {};
}

}  // namespace

Result<WhatIf> PrepareWhatIf(const Interaction& recorded, RequestBodies& bodies, const PresentAgent& agent,
                             const WhatIfChanges& changes) {
  if (recorded.user_message.empty()) {
    return Fail(Reason::kNotReplayable, "no message began this turn: it is a change by a person");
  }
  TRY(CheckEffects(agent, changes.allow_effects));
  const Recording recording = TRY(Recording::Of(recorded));
  Cut cut(recorded, recording, changes);
  TRY(cut.Find());
  WhatIf what_if{.turn = TRY(PrepareLive(recorded, bodies, agent, changes.model)),
                 .at = changes.at.value_or(0),
                 .allow_effects = changes.allow_effects};
  TRY(cut.MakeStart(what_if.turn, bodies));
  if (changes.keep) TRY(cut.KeepRequests(what_if.turn, bodies));
  // People's answers to questions stay those on record. Everything else happens anew.
  const auto tools = agent.workspace.tools.Current();
  std::erase_if(what_if.turn.calls, [&](const AnsweredCall& each) {
    const Tool* const tool = tools->Find(each.call.name);
    return tool == nullptr || !tool->traits().only_asks;
  });
  return what_if;
}

Result<Interaction> AsBranch(const Interaction& recorded, const WhatIf& what_if, Interaction made,
                             CheckpointStore& store) {
  AgentState before = TRY(store.LoadPreviousState(recorded.chat_id, recorded.id)).value_or(AgentState());
  AgentState& state = *made.final_agent_state;
  // A run in a copy has none of these, so they are as they were.
  state.grants = std::move(before.grants);
  state.memory = std::move(before.memory);
  state.jobs = std::move(before.jobs);
  if (!made.record) {
    made.record.emplace();
    state.request = before.request;
  }
  RunRecord& record = *made.record;
  const RunRecord then = recorded.record ? *recorded.record : TRY(DeriveRecord(recorded));
  record.first_message = then.first_message;
  record.resumed_from = then.resumed_from;
  record.names_model = then.names_model || made.model != recorded.model;
  record.effort = then.effort;
  record.what_if = what_if.at;
  record.agenda_before.reset();
  const Agenda agenda_before = AgendaAfter(recorded, {});
  if (agenda_before != state.agenda) record.agenda_before = agenda_before;
  made.edited_from = recorded.id;
  std::erase_if(made.events,
                [](const AgentEvent& each) { return std::holds_alternative<event::FilesChanged>(each.payload); });
  for (AgentEvent& each : made.events) each.at = std::max(each.at, made.created_at);
  return made;
}

void NameBranch(Interaction& branch, InteractionId id) {
  const auto name = [&](RequestPlace& place) {
    if (place.interaction == *branch.edited_from) place.interaction = id;
  };
  if (branch.record->requests) {
    for (SentRequest& each : *branch.record->requests) {
      if (each.body.before) name(*each.body.before);
    }
  }
  if (auto& request = branch.final_agent_state->request) name(request->place);
  branch.id = id;
}

std::vector<WorkspaceChange> NetChanges(const std::vector<AgentEvent>& events, std::uint64_t after) {
  std::map<std::string, WorkspaceChange> net;
  for (const AgentEvent& each : events) {
    const auto* const changed = std::get_if<event::FilesChanged>(&each.payload);
    if (changed == nullptr || each.seq <= after) continue;
    for (const WorkspaceChange& change : changed->changes) {
      const auto [known, is_new] = net.try_emplace(change.path, change);
      if (!is_new) known->second.after = change.after;
    }
  }
  std::vector<WorkspaceChange> changes;
  for (auto& [path, change] : net) {
    if (change.before != change.after) changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace reprise
