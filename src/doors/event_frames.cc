#include "doors/event_frames.h"

#include <algorithm>
#include <charconv>

namespace reprise {

std::string_view EventFrame::ContentLiteral() const {
  constexpr std::string_view kContent = ",\"content\":";
  if (!name.ends_with("_delta")) return {};
  // The content comes last. Before it only a call's id and tool hold free text, and a quote in those would be escaped.
  const std::size_t at = data.find(kContent);
  if (at == std::string_view::npos || !data.ends_with("\"}")) return {};
  return data.substr(at + kContent.size(), data.size() - at - kContent.size() - 1);
}

std::optional<EventFrame> TakeFrame(std::string_view& frames) {
  constexpr std::string_view kId = "id: ", kEvent = "\nevent: ", kData = "\ndata: ", kEnd = "\n\n";
  const std::string_view frame = frames.substr(0, frames.find(kEnd));
  frames.remove_prefix(std::min(frame.size() + kEnd.size(), frames.size()));
  const std::size_t data = frame.find(kData);
  if (data == std::string_view::npos || !frame.starts_with(kId)) return std::nullopt;
  EventFrame event{.data = frame.substr(data + kData.size())};
  const std::string_view head = frame.substr(0, data);
  if (const std::size_t name = head.find(kEvent); name != std::string_view::npos) {
    event.name = head.substr(name + kEvent.size());
  }
  std::from_chars(frame.data() + kId.size(), frame.data() + frame.size(), event.seq);
  return event;
}

}  // namespace reprise
