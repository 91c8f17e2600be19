#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reprise/event.h"
#include "reprise/interaction_store.h"
#include "reprise/question_store.h"

namespace reprise {

// The progress of a run, derived from its events.
struct RunState {
  void Take(const AgentEvent& event);
  // Removes a question that needs no answer any more.
  void Settle(const std::string& question_id);

  std::optional<InteractionRef> run{};  // nullopt until it has begun
  std::string model{};
  std::vector<PendingQuestion> open{};  // open questions to people, oldest first
  event::Answer answer{};               // the last one
  event::Failed failure{};              // likewise
  std::optional<event::Cancelled> cancelled{};
  std::optional<InteractionStatus> status{};  // its final status; nullopt until it has ended
};

}  // namespace reprise
