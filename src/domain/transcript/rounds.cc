#include "domain/transcript/rounds.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "domain/transcript/event_visitor.h"

namespace reprise {
namespace {

using Call = Round::Call;

// Puts one event after the other where it belongs.
class Placer {
 public:
  // `rounds` are the same each time, wherever they lie; all calls in them were added by Add.
  void Place(std::vector<Round>& rounds, const AnyEvent& payload, std::size_t index, Timestamp at) {
    rounds_ = &rounds;
    at_ = at;
    index_ = index;
    std::visit(
        Overload{
            Ignoring<event::InteractionStarted, event::ThinkingDelta, event::TextDelta, event::ToolOutputDelta,
                     event::SoundDelta, event::Sound, event::WebSearch, event::InputRequired, event::InputReceived,
                     event::TaskUpdated, event::PlanUpdated, event::GrantsUpdated, event::Retry, event::LoopDetected,
                     event::SentBack, event::Compacted, event::FilesChanged, event::JobStarted, event::JobEnded,
                     event::Cancelled, event::Failed, event::InteractionComplete>(),
            [&](const event::Thinking& e) { Here().thinking += e.content; },
            [&](const event::MessageText& e) { SetText(e.content); },
            [&](const event::Answer& e) { SetText(e.content); },
            [&](const event::Usage& e) { Here().usage += e.tokens; },
            [&](const event::ToolCallStarted& e) { Of(e.id, e.tool_name, e.tool_input); },
            [&](const event::ToolResult& e) {
              Call& call = Of(e.id, e.tool_name, "{}");
              call.result = e.tool_output;
              call.has_result = true;
              call.is_error = e.is_error;
              call.files = e.files;
              call.at = at;
            },
            [&](const event::ApprovalRequired& e) {
              if (Call* call = Find(*rounds_, e.call_id)) call->asked = e;
            },
            [&](const event::Approved& e) {
              if (Call* call = Find(*rounds_, e.call_id)) call->approved = e, call->answered_at = at;
            },
            [&](const event::Rejected& e) {
              if (Call* call = Find(*rounds_, e.call_id)) call->rejected = e, call->answered_at = at;
            },
            [&](const event::Nested& e) {
              Call* const call = Find(*rounds_, e.call_id);
              if (call == nullptr) return;
              AnyEvent step = std::visit([](const auto& each) { return AnyEvent(each); }, e.step);
              below_[e.call_id].Place(call->of_sub_agent, step, e.round_index, at);
            }},
        payload);
  }

  // Adds a call to a round. Of several with one id, the first is found.
  void Add(std::vector<Round>& rounds, std::size_t round, Call call) {
    std::vector<Call>& calls = rounds[round].calls;
    places_.try_emplace(call.id, round, calls.size());
    calls.push_back(std::move(call));
  }
  Call* Find(std::vector<Round>& rounds, const std::string& id) const {
    const auto place = places_.find(id);
    return place == places_.end() ? nullptr : &rounds[place->second.first].calls[place->second.second];
  }

 private:
  Round& Here() {
    if (rounds_->size() <= index_) rounds_->resize(index_ + 1);
    Round& round = (*rounds_)[index_];
    if (round.at == Timestamp()) round.at = at_;
    return round;
  }
  void SetText(const std::string& text) {
    if (Here().text.empty()) Here().text = text;
  }
  Call& Of(const std::string& id, const std::string& name, const std::string& arguments) {
    Here();
    if (Call* known = Find(*rounds_, id)) return *known;
    Add(*rounds_, index_, Call{.id = id, .name = name, .arguments = arguments});
    return Here().calls.back();
  }

  std::vector<Round>* rounds_ = nullptr;
  std::size_t index_ = 0;
  Timestamp at_{};
  std::unordered_map<std::string, std::pair<std::size_t, std::size_t>> places_;  // round and call, by id
  std::map<std::string, Placer> below_;                                          // of sub-agents, by their call
};

}  // namespace

Json ArgumentsObject(const Round::Call& call) {
  auto json = ParseJson(call.arguments.empty() ? "{}" : call.arguments);
  return json && json->is_object() ? *std::move(json) : Json{{"unparsed", call.arguments}};
}

std::vector<Round> RoundsOf(const AddedInteraction& turn) {
  const Interaction& interaction = turn.interaction;
  std::vector<Round> rounds;
  Placer placer;
  std::uint32_t first = 0;  // the number of the first round
  if (interaction.final_agent_state) {
    const Messages& messages = interaction.final_agent_state->messages;
    const std::size_t own = interaction.record ? interaction.record->first_message : turn.kept_messages;
    for (std::size_t i = own - std::min(own, turn.kept_messages); i < messages.size(); ++i) {
      const Message& message = messages[i];
      if (message.role == Role::kAssistant) {
        rounds.emplace_back(Round{.text = message.content.value_or(""), .extras = message.extras});
        for (const ToolCall& call : message.tool_calls) {
          placer.Add(rounds, rounds.size() - 1, Call{.id = call.id, .name = call.name, .arguments = call.arguments});
        }
      } else if (Call* call = message.role == Role::kTool ? placer.Find(rounds, message.tool_call_id) : nullptr) {
        call->result = message.content.value_or("");
        call->has_result = true;
        call->is_error = message.is_error;
      }
    }
    if (interaction.record && interaction.record->resumed_from) first = 1;
  }
  for (const AgentEvent& each : interaction.events) {
    placer.Place(rounds, each.payload, each.round_index - std::min(each.round_index, first), each.at);
  }
  for (Round& round : rounds) {
    if (round.at == Timestamp()) round.at = interaction.created_at;
  }
  return rounds;
}

}  // namespace reprise
