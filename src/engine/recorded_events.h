#pragma once

#include <memory>
#include <vector>

#include "reprise/event_log.h"
#include "reprise/interaction.h"

namespace reprise {

// The event that begins every interaction: number 1.
AgentEvent StartOf(const Interaction& interaction);

// The events of a stored interaction as its stream showed them, with the frames that the file leaves out because they
// follow from the rest: interaction_started is number 1, interaction_complete the one after the last.
std::vector<AgentEvent> RecordedEvents(const Interaction& interaction);

// A closed log of them.
std::shared_ptr<EventLog> RecordedLog(const Interaction& interaction);

}  // namespace reprise
