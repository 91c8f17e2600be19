#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "reprise/event_log.h"

namespace reprise {

// An event as an EventLog frames it. The views are valid as long as the log's bytes.
struct EventFrame {
  std::uint64_t seq = 0;
  std::string_view name = {};  // "text_delta"
  std::string_view data = {};  // one line of JSON

  // The member "content" of a delta as written, a JSON string with its quotes; empty if this is no text_delta,
  // thinking_delta or tool_output_delta. Does not parse, because every token takes this path.
  std::string_view ContentLiteral() const;
};

// Removes the first frame from `frames`, which come from EventLog::Read and are not empty. nullopt if it is no event.
std::optional<EventFrame> TakeFrame(std::string_view& frames);

// Calls `take` with each event that the log shows now.
template <typename Take>
void EachEvent(const EventLog& log, const Take& take) {
  for (std::uint64_t offset = 0;;) {
    std::string_view frames = log.Read(offset).bytes;
    if (frames.empty()) return;
    offset += frames.size();
    while (!frames.empty()) {
      if (const auto event = TakeFrame(frames)) take(*event);
    }
  }
}

}  // namespace reprise
