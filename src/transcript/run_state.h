#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reprise/event.h"
#include "reprise/interaction_store.h"
#include "reprise/question_store.h"

namespace reprise {

// How far a run has come, as its events tell it.
struct RunState {
  void Take(const AgentEvent& event);
  // Takes the question away, which needs no answer any more.
  void Settle(const std::string& question_id);

  std::optional<InteractionRef> run{};  // nullopt: it has not begun
  std::string model{};
  std::vector<PendingQuestion> open{};  // what it asks people, oldest first
  event::Answer answer{};               // the last one
  event::Failed failure{};              // likewise
  std::optional<event::Cancelled> cancelled{};
  std::optional<InteractionStatus> status{};  // that it has ended with; nullopt: it has not
};

}  // namespace reprise
