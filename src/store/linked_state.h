#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "reprise/interaction.h"
#include "reprise/message.h"
#include "reprise/result.h"

// Long states on disk (schemas/FILES.md). A chat's state grows with every turn, and every checkpoint has it: written in
// full each time, a chat would take disk space with the square of its length. So a checkpoint of a long chat holds what
// was added to its parent's state, with full states at growing distances.
namespace reprise {

// States up to this size are always written in full.
inline constexpr std::uint64_t kFullStateBytes = 64 * 1024;

// What the checkpoint after this one has to know about a state.
struct StateTotals {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;       // of the messages as JSON
  std::string digest;            // names the messages and their order
  std::uint64_t full_bytes = 0;  // size of the last state in its history that was written in full
  std::uint64_t files = 0;       // and how many files have added to it since
};
StateTotals TotalsOf(const AgentState& state);

// Whether the state whose totals these are is the beginning of `state`: as its digest says, to the byte.
bool BeginsWith(const AgentState& state, const StateTotals& totals);

// A state that was written as what it adds.
struct StateLink {
  std::uint64_t kept = 0;  // so many messages of the parent's state come first
  StateTotals totals;
};

// What is known of the state that another one may continue.
struct KnownState {
  StateTotals totals;
  std::shared_ptr<const AgentState> state;  // null: not at hand, and its digest has to do
};

// How `state` is to be written: as what it adds to its parent's. nullopt: in full, because it is short, does not
// continue the parent's, or it is time for a full one.
std::optional<StateLink> LinkTo(const KnownState& parent, const AgentState& state);

// The JSON of an interaction whose state is written so.
Json ToLinkedJson(const Interaction& interaction, const StateLink& link);

// A state that continues the parent's with these messages, of which the totals are known.
StateTotals Continued(StateTotals parent, const Messages& added);
// The JSON of an interaction whose state was given as what it adds. All texts stand where they belong.
Json ToLinkedJson(const AddedInteraction& added, const StateTotals& totals);

// Whether an interaction's JSON text has such a link in it.
bool HasLinkedState(std::string_view interaction);

// Takes the link out again: the state then has the messages that were added. nullopt: it was written in full.
// kCorruption if the link is not what ToLinkedJson writes.
Result<std::optional<StateLink>> UnlinkState(Json& interaction);

}  // namespace reprise
