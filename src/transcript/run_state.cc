#include "transcript/run_state.h"

#include <variant>

#include "transcript/event_visitor.h"

namespace reprise {

void RunState::Settle(const std::string& question_id) {
  std::erase_if(open, [&](const PendingQuestion& each) { return QuestionId(each) == question_id; });
}

void RunState::Take(const AgentEvent& event) {
  std::visit(Overload{
                 Ignoring<event::ThinkingDelta, event::TextDelta, event::Thinking, event::MessageText,
                          event::ToolCallStarted, event::ToolOutputDelta, event::ToolResult, event::TaskUpdated,
                          event::PlanUpdated, event::GrantsUpdated, event::Usage, event::Retry, event::LoopDetected,
                          event::Compacted, event::Nested, event::FilesChanged>(),
                 [&](const event::InteractionStarted& e) {
                   const auto chat = ChatId::Parse(e.chat_id);
                   const auto interaction = InteractionId::Parse(e.interaction_id);
                   if (chat && interaction) run = InteractionRef{*chat, *interaction};
                   model = e.model;
                 },
                 [&](const event::ApprovalRequired& e) {
                   if (run) open.emplace_back(PendingApproval{run->chat_id, run->interaction_id, e});
                 },
                 [&](const event::InputRequired& e) {
                   if (run) open.emplace_back(PendingInput{run->chat_id, run->interaction_id, e});
                 },
                 [&](const event::Approved& e) { Settle(e.approval_id); },
                 [&](const event::Rejected& e) { Settle(e.approval_id); },
                 [&](const event::InputReceived& e) { Settle(e.request_id); },
                 [&](const event::Answer& e) { answer = e; },
                 [&](const event::Cancelled& e) {
                   cancelled = e;
                   open.clear();
                 },
                 [&](const event::Failed& e) { failure = e; },
                 [&](const event::InteractionComplete& e) {
                   status = e.status;
                   open.clear();
                 },
             },
             event.payload);
}

}  // namespace reprise
