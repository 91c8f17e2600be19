#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "reprise/event.h"

namespace reprise {

// The first place where a replay is not what was recorded.
struct Divergence {
  std::uint64_t seq = 0;                 // of the recorded event, or the one after the last
  std::optional<AgentEvent> expected{};  // nullopt: the record has nothing more
  std::optional<AgentEvent> actual{};  // nullopt: the replay came to its end, or to something the record does not hold
  std::string reason{};                // one sentence for people
};

// What a replay has shown.
struct ReplayReport {
  std::size_t events = 0;  // durable events that were compared and equal
  std::optional<Divergence> divergence{};
};

}  // namespace reprise
