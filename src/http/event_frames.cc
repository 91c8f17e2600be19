#include "http/event_frames.h"

#include <algorithm>
#include <charconv>

namespace reprise {

std::optional<EventFrame> TakeFrame(std::string_view& frames) {
  constexpr std::string_view kId = "id: ", kData = "\ndata: ", kEnd = "\n\n";
  const std::string_view frame = frames.substr(0, frames.find(kEnd));
  frames.remove_prefix(std::min(frame.size() + kEnd.size(), frames.size()));
  const std::size_t data = frame.find(kData);
  if (data == std::string_view::npos || !frame.starts_with(kId)) return std::nullopt;
  EventFrame event{.data = frame.substr(data + kData.size())};
  std::from_chars(frame.data() + kId.size(), frame.data() + frame.size(), event.seq);
  return event;
}

}  // namespace reprise
