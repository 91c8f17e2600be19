#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/agent_loop.h"
#include "engine/run_journal.h"
#include "reprise/interaction.h"
#include "reprise/message.h"

// What becomes of a run whose process ended.
namespace reprise {

// The result of a tool call that had begun when the process ended: nobody knows what it did, so it is never run again
// by itself.
inline constexpr std::string_view kOutcomeUnknown = "The server ended while this call ran. What it did is not known.";

// `state` is that of the parent, or of the interaction that the run goes on with; afterwards it is what the run had
// come to.
void RestoreState(const InterruptedRun& run, AgentState& state);

// What the run was waiting for: the request and the calls of its round from that one on.
struct Question {
  std::variant<event::ApprovalRequired, event::InputRequired> request;
  std::vector<ToolCall> calls;
};
std::optional<Question> OpenQuestion(const InterruptedRun& run, const AgentState& state);

// Where an interaction that did not come to its end goes on: a call whose outcome is not known is run again if its tool
// may be, else the model is told.
AgentLoop::Interrupted WhereToResume(const AgentState& state, const ToolSet& tools);

// Makes the final state of such an interaction what a run goes on from: what the model had begun to say is dropped, for
// it says it again, and so are the results of the calls that are run again.
void PrepareToResume(AgentState& state, const std::vector<std::string>& call_ids);

// The run as an interaction that FAILED (error "interrupted"), with everything that was seen of it.
Interaction EndInterrupted(InterruptedRun run, AgentState state);

}  // namespace reprise
