#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "reprise/event.h"

namespace reprise {

// The first difference between a replay and its record.
struct Divergence {
  std::uint64_t seq = 0;                 // of the recorded event, or one above the last
  std::optional<AgentEvent> expected{};  // nullopt: the record has ended
  std::optional<AgentEvent> actual{};  // nullopt: the replay has ended, or stands at something that records do not hold
  std::string reason{};                // one sentence for people
};

// The result of a replay.
struct ReplayReport {
  std::size_t events = 0;  // durable events that were equal
  std::optional<Divergence> divergence{};
};

}  // namespace reprise
