#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "engine/run_journal.h"
#include "reprise/interaction.h"
#include "reprise/message.h"

// Recovery of a run whose process ended.
namespace reprise {

// `state` is the state of the parent, or of the interaction that the run continues. Afterwards it is the run's last
// state, and the run's record is complete.
void RestoreState(InterruptedRun& run, AgentState& state);

// The open questions of a run, and where it continues after the answers: the unfinished calls of its round, with
// earlier answers.
struct OpenQuestions {
  std::vector<event::ApprovalRequired> approvals;
  std::optional<event::InputRequired> input;
  Interrupted where;
};
// nullopt if the run waited for nobody, or for something that cannot be asked again with these tools.
std::optional<OpenQuestions> FindOpenQuestions(const InterruptedRun& run, const AgentState& state,
                                               const ToolSet& tools);

// Where an unfinished interaction continues. A call with unknown outcome is run again if its tool allows it; otherwise
// the model is told.
Interrupted WhereToResume(const AgentState& state, const ToolSet& tools);

// Turns the final state of such an interaction into one to continue from: drops the unfinished answer, which the model
// gives again, and the results of calls that run again.
void PrepareToResume(AgentState& state, const std::vector<std::string>& call_ids);

// The run as a FAILED interaction (error "interrupted"), with everything that was shown of it.
Interaction EndInterrupted(InterruptedRun run, AgentState state);

}  // namespace reprise
