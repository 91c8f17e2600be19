#include "client/archive/past_calls.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <variant>

#include "approval/decision.h"
#include "base/json.h"
#include "domain/audit_reading.h"
#include "domain/codec.h"

namespace reprise {
namespace {

// The calls of one turn, as its messages and events show them.
class TurnCalls {
 public:
  explicit TurnCalls(const Interaction& turn) : turn_(turn) {
    if (!turn.record || !turn.final_agent_state) return;
    const Messages& messages = turn.final_agent_state->messages;
    for (std::size_t i = turn.record->first_message; i < messages.size(); ++i) {
      for (const ToolCall& call : messages[i].tool_calls) Find(call.id, call, turn.created_at);
      const auto answered = by_id_.find(messages[i].tool_call_id);
      if (answered != by_id_.end() && messages[i].content == kPlanningResult) {
        calls_[answered->second].refused_for_plan = true;
      }
    }
  }

  void Note(const AgentEvent& event) {
    if (const auto* asked = std::get_if<event::ApprovalRequired>(&event.payload)) {
      NoteQuestion(*asked, event.at);
    } else if (const auto* approved = std::get_if<event::Approved>(&event.payload)) {
      PastCall* const call = Asked(approved->approval_id);
      if (call == nullptr) return;
      const bool is_changed = approved->tool_input && *approved->tool_input != call->call.arguments;
      call->fate = is_changed ? PastCall::Fate::kChanged : PastCall::Fate::kApproved;
      if (is_changed) call->changed_to = *approved->tool_input;
      call->outside_sandbox = approved->outside_sandbox;
    } else if (const auto* rejected = std::get_if<event::Rejected>(&event.payload)) {
      PastCall* const call = Asked(rejected->approval_id);
      if (call == nullptr || rejected->superseded) return;  // then it asks again, or is refused as it is now
      call->fate = rejected->expired ? PastCall::Fate::kExpired : PastCall::Fate::kRejected;
    } else if (const auto* started = std::get_if<event::ToolCallStarted>(&event.payload)) {
      NoteStart(started->id, *started, event.at);
    } else if (const auto* nested = std::get_if<event::Nested>(&event.payload)) {
      const auto* step = std::get_if<event::ToolCallStarted>(&nested->step);
      if (step != nullptr) NoteStart(event::NestedCallId(nested->call_id, step->id), *step, event.at);
    }
  }

  std::vector<PastCall> Take() { return std::move(calls_); }

 private:
  PastCall& Find(const std::string& id, const ToolCall& call, Timestamp at) {
    const auto [found, is_new] = by_id_.try_emplace(id, calls_.size());
    if (!is_new) return calls_[found->second];
    return calls_.emplace_back(PastCall{.chat = turn_.chat_id,
                                        .interaction = turn_.id,
                                        .id = id,
                                        .workspace = turn_.workspace,
                                        .at = at,
                                        .call = call});
  }
  PastCall* Asked(const std::string& approval_id) {
    const auto found = by_approval_.find(approval_id);
    return found == by_approval_.end() ? nullptr : &calls_[found->second];
  }
  // Of a call that is asked about again, on other terms, the last question counts.
  void NoteQuestion(const event::ApprovalRequired& asked, Timestamp at) {
    if (asked.tool_name == kNetworkTool) return;  // about a host, which no rule decides on
    const std::string own_id = asked.agent.empty() ? asked.call_id : asked.call_id.substr(asked.call_id.find('/') + 1);
    PastCall& call = Find(asked.call_id, {.id = own_id, .name = {}, .arguments = {}}, at);
    call.call.name = asked.tool_name;
    call.call.arguments = asked.tool_input;
    call.at = at;
    call.asked = asked;
    call.fate = PastCall::Fate::kUnanswered;
    by_approval_[asked.approval_id] = by_id_[asked.call_id];
  }
  void NoteStart(const std::string& id, const event::ToolCallStarted& started, Timestamp at) {
    PastCall& call = Find(id, {.id = started.id, .name = {}, .arguments = {}}, at);
    if (call.asked) return;  // a person may have changed what runs
    call.call.name = started.tool_name;
    call.call.arguments = started.tool_input;
    call.at = at;
  }

  const Interaction& turn_;
  std::vector<PastCall> calls_;
  std::map<std::string, std::size_t> by_id_, by_approval_;
};

// The fate of a call in the log's words; nullopt if the line does not tell.
std::optional<PastCall::Fate> FateIn(const Json& line, const std::string& reason) {
  const std::string event = TextMember(line, "event");
  if (event == "started") return PastCall::Fate::kRan;
  if (event != "refused") return std::nullopt;
  if (reason == "rule") return PastCall::Fate::kDenied;
  return reason == "mode" ? PastCall::Fate::kRefusedByMode : PastCall::Fate::kRefused;
}

}  // namespace

void PastCalls::Add(const Chat& chat, Timestamp since) {
  for (const Interaction& each : chat.interactions) {
    if (each.created_at < since) continue;
    if (each.imported) {
      ++imported_;
    } else {
      Add(each);
    }
  }
}

void PastCalls::Add(const Interaction& interaction) {
  TurnCalls calls(interaction);
  for (const AgentEvent& event : interaction.events) calls.Note(event);
  ++turns_;
  std::ranges::move(calls.Take(), std::back_inserter(calls_));
}

Result<void> PastCalls::ReadFates(const AuditLog& log) {
  // The call's id in the log is that of a sub-agent's call alone, so different calls may have it.
  using LogKey = std::tuple<std::string, std::string, std::string, std::string>;  // chat, turn, call, arguments' digest
  std::map<LogKey, std::vector<PastCall*>> unknown;
  for (PastCall& each : calls_) {
    const bool may_be_denied = each.fate == PastCall::Fate::kApproved || each.fate == PastCall::Fate::kUnanswered;
    if (each.fate != PastCall::Fate::kUnknown && !may_be_denied) continue;
    unknown[{each.chat.str(), each.interaction.str(), each.call.id, ArgumentsDigest(each.call.arguments)}].push_back(
        &each);
  }
  const auto read = ReadAuditLines(log, [&](const Json& line) {
    const std::string reason = TextMember(line, "reason");
    const auto fate = FateIn(line, reason);
    if (!fate) return true;
    const auto found = unknown.find({TextMember(line, "chat_id"), TextMember(line, "interaction_id"),
                                     TextMember(line, "call_id"), TextMember(line, "arguments_digest")});
    if (found == unknown.end()) return true;
    for (PastCall* const call : found->second) {
      // A rule may deny what a person has approved.
      if (call->was_asked() && *fate != PastCall::Fate::kDenied) continue;
      if (call->fate == PastCall::Fate::kDenied) continue;
      call->fate = *fate;
      if (*fate == PastCall::Fate::kRan) call->permission = reason;
    }
    return true;
  });
  DropCopies();
  return read;
}

// The log has the turns of a fork under the name of the chat that ran them. A resumed turn answers questions of
// another.
void PastCalls::DropCopies() {
  std::map<std::tuple<std::string, Timestamp, std::string, std::string>, std::size_t> first;
  std::vector<PastCall> kept;
  for (PastCall& each : calls_) {
    const auto [found, is_new] =
        each.asked ? first.try_emplace({each.asked->approval_id, {}, {}, {}}, kept.size())
                   : first.try_emplace({std::string(), each.at, each.id, each.call.arguments}, kept.size());
    if (is_new) {
      kept.push_back(std::move(each));
      continue;
    }
    PastCall& other = kept[found->second];
    const bool is_open = other.fate == PastCall::Fate::kUnknown || other.fate == PastCall::Fate::kUnanswered;
    if (is_open) other = std::move(each);
  }
  calls_ = std::move(kept);
}

}  // namespace reprise
