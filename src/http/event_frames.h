#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace reprise {

// An event as a log has framed it.
struct EventFrame {
  std::uint64_t seq = 0;
  std::string_view data;  // one line of JSON
};

// Takes the first frame off `frames`, which EventLog::Read has given and which are not empty. nullopt: it is no event.
std::optional<EventFrame> TakeFrame(std::string_view& frames);

}  // namespace reprise
