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

// Long states on disk (schemas/FILES.md). A chat's state grows with every turn, and every checkpoint has it. Written in
// full each time, it would take disk space with the square of the chat's length. So a checkpoint of a long chat holds
// only the additions to its parent's state, with full states at growing distances.
namespace reprise {

// States up to this size are always written in full.
inline constexpr std::uint64_t kFullStateBytes = 64 * 1024;

// The facts about a state that the next checkpoint needs.
struct StateTotals {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;       // of the messages as JSON
  std::string digest;            // names the messages and their order
  std::uint64_t full_bytes = 0;  // size of the last state in its history that was written in full
  std::uint64_t files = 0;       // the number of files that have added to it since
};
StateTotals TotalsOf(const AgentState& state);

// Whether `state` begins with the state of these totals, byte for byte according to the digest.
bool BeginsWith(const AgentState& state, const StateTotals& totals);

// A state that was written as its additions.
struct StateLink {
  std::uint64_t kept = 0;  // the number of the parent's messages that come first
  StateTotals totals;
};

// A state that another one may continue, as far as it is known.
struct KnownState {
  StateTotals totals;
  std::shared_ptr<const AgentState> state;  // null: only the totals are known
};

// The link for writing `state` as additions to its parent's. nullopt: write it in full, because it is short, does not
// continue the parent's, or a full one is due.
std::optional<StateLink> LinkTo(const KnownState& parent, const AgentState& state);

// The JSON of an interaction whose state is written with this link.
Json ToLinkedJson(const Interaction& interaction, const StateLink& link);

// The totals of a state that continues the parent's with these messages.
StateTotals Continued(StateTotals parent, const Messages& added);
// The JSON of an interaction whose state was given as its additions. No text is replaced by a reference.
Json ToLinkedJson(const AddedInteraction& added, const StateTotals& totals);

// Whether an interaction's JSON text has such a link.
bool HasLinkedState(std::string_view interaction);

// Removes the link again; the state keeps the messages that were added. nullopt: it was written in full. kCorruption
// if ToLinkedJson does not write such a link.
Result<std::optional<StateLink>> UnlinkState(Json& interaction);

}  // namespace reprise
