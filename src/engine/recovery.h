#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/history.h"
#include "engine/run_journal.h"
#include "reprise/interaction.h"
#include "reprise/message.h"

// What becomes of a run whose process ended.
namespace reprise {

// `state` is that of the parent, or of the interaction that the run goes on with; afterwards it is what the run had
// come to, and the run's record is complete.
void RestoreState(InterruptedRun& run, AgentState& state);

// What the run was waiting for, and where it goes on when it has that: the calls of its round that are not over, with
// what was answered before.
struct OpenQuestions {
  std::vector<event::ApprovalRequired> approvals;
  std::optional<event::InputRequired> input;
  Interrupted where;
};
// nullopt: it was not waiting for anybody, or for something that cannot be asked again with these tools.
std::optional<OpenQuestions> FindOpenQuestions(const InterruptedRun& run, const AgentState& state,
                                               const ToolSet& tools);

// Where an interaction that did not come to its end goes on: a call whose outcome is not known is run again if its tool
// may be, else the model is told.
Interrupted WhereToResume(const AgentState& state, const ToolSet& tools);

// Makes the final state of such an interaction what a run goes on from: what the model had begun to say is dropped, for
// it says it again, and so are the results of the calls that are run again.
void PrepareToResume(AgentState& state, const std::vector<std::string>& call_ids);

// The run as an interaction that FAILED (error "interrupted"), with everything that was seen of it.
Interaction EndInterrupted(InterruptedRun run, AgentState state);

}  // namespace reprise
