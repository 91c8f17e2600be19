#include "reprise/event_log.h"

#include <algorithm>
#include <iterator>

#include "base/json.h"
#include "domain/codec.h"
#include "domain/event_codec.h"

namespace reprise {

// Segments grow with the log, from small (most runs say little, and a thousand of them may be open) to large (a long stream
// should be readable in big pieces), so that at most a fifth of the memory is unused.
struct EventLog::Segment {
  std::uint64_t begin;
  std::string bytes;  // reserved once, so that a reader's view stays valid while more is appended
};

namespace {

constexpr std::size_t kSmallestSegment = 2 * 1024, kLargestSegment = 64 * 1024;

// id, event and data lines around `data`; the longest number and name fit into the slack.
constexpr std::size_t kFrameSlack = 96;

void AppendFrame(std::string& out, std::uint64_t seq, std::string_view name, std::string_view data) {
  out += "id: ";
  out += std::to_string(seq);
  out += "\nevent: ";
  out += name;
  out += "\ndata: ";
  out += data;
  out += "\n\n";
}

}  // namespace

EventLog::EventLog() : listeners_(std::make_shared<const Listeners>()) {}
EventLog::~EventLog() = default;

std::string& EventLog::Reserve(std::size_t bytes) {
  if (segments_.empty() || segments_.back()->bytes.capacity() - segments_.back()->bytes.size() < bytes) {
    const std::size_t next = std::clamp<std::size_t>(size_ / 4, kSmallestSegment, kLargestSegment);
    segments_.push_back(std::make_unique<Segment>());
    segments_.back()->begin = size_;
    segments_.back()->bytes.reserve(std::max(next, bytes));
  }
  return segments_.back()->bytes;
}

std::uint64_t EventLog::NextMark() {
  marks_.push_back({++last_seq_, size_});
  return last_seq_;
}

AgentEvent EventLog::Append(std::uint32_t round_index, EventPayload payload) {
  AgentEvent event{.seq = 0, .round_index = round_index, .at = Now(), .payload = std::move(payload)};
  const std::lock_guard lock(mutex_);
  event.seq = NextMark();
  const std::string data = EventData(event);
  std::string& out = Reserve(data.size() + kFrameSlack);
  const std::size_t before = out.size();
  AppendFrame(out, event.seq, EventName(event.payload), data);
  size_ += out.size() - before;
  return event;
}

void EventLog::AppendRecorded(const AgentEvent& event) {
  const std::string data = EventData(event);
  const std::lock_guard lock(mutex_);
  last_seq_ = event.seq - 1;
  NextMark();
  std::string& out = Reserve(data.size() + kFrameSlack);
  const std::size_t before = out.size();
  AppendFrame(out, event.seq, EventName(event.payload), data);
  size_ += out.size() - before;
}

void EventLog::AppendTextDelta(std::uint32_t round_index, std::string_view text) {
  AppendDelta(event::TextDelta::kType, event::TextDelta::kName, round_index, text);
}

void EventLog::AppendThinkingDelta(std::uint32_t round_index, std::string_view text) {
  AppendDelta(event::ThinkingDelta::kType, event::ThinkingDelta::kName, round_index, text);
}

void EventLog::AppendDelta(std::string_view type, std::string_view name, std::uint32_t round_index,
                           std::string_view text) {
  std::string content;
  content.reserve(text.size() + 16);
  AppendJsonEscaped(content, text);
  const std::lock_guard lock(mutex_);
  const std::uint64_t seq = NextMark();
  const std::string number = std::to_string(seq);
  std::string& out = Reserve(content.size() + 2 * kFrameSlack);
  const std::size_t before = out.size();
  out.append("id: ").append(number).append("\nevent: ").append(name);
  out.append("\ndata: {\"type\":\"").append(type).append("\",\"seq\":").append(number);
  out.append(",\"round_index\":").append(std::to_string(round_index));
  out.append(",\"content\":\"").append(content).append("\"}\n\n");
  size_ += out.size() - before;
}

void EventLog::Publish() {
  std::shared_ptr<const Listeners> listeners;
  {
    const std::lock_guard lock(mutex_);
    if (visible_ == size_ && !closed_) return;
    visible_ = size_;
    last_visible_seq_ = last_seq_;
    listeners = listeners_;
  }
  for (const auto& listener : *listeners) listener->OnPublished(listeners->size());
}

void EventLog::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  Publish();
}

EventLog::View EventLog::Read(std::uint64_t offset) const {
  const std::lock_guard lock(mutex_);
  if (offset >= visible_) return {.bytes = {}, .end = closed_ && visible_ == size_};
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), offset,
                                      [](std::uint64_t o, const auto& segment) { return o < segment->begin; });
  const Segment& segment = **std::prev(after);
  const std::size_t from = static_cast<std::size_t>(offset - segment.begin);
  const std::size_t to = std::min<std::size_t>(segment.bytes.size(), static_cast<std::size_t>(visible_ - segment.begin));
  const bool last = segment.begin + to == size_;
  return {.bytes = std::string_view(segment.bytes.data() + from, to - from), .end = closed_ && last};
}

Result<std::uint64_t> EventLog::OffsetAfter(std::uint64_t seq) const {
  const std::lock_guard lock(mutex_);
  if (seq > last_visible_seq_) {
    return Fail(Error{.code = ErrorCode::kInvalidArgument,
                      .reason = "cursor_ahead",
                      .message = "there is no event with that number yet"});
  }
  const auto next = std::upper_bound(marks_.begin(), marks_.end(), seq,
                                     [](std::uint64_t s, const Mark& mark) { return s < mark.seq; });
  return next == marks_.end() ? visible_ : std::min(next->begin, visible_);
}

EventLog::Position EventLog::end() const {
  const std::lock_guard lock(mutex_);
  return {.offset = visible_, .last_seq = last_visible_seq_, .closed = closed_};
}

void EventLog::Subscribe(std::shared_ptr<EventLogListener> listener) {
  const std::lock_guard lock(mutex_);
  auto changed = std::make_shared<Listeners>(*listeners_);
  changed->push_back(std::move(listener));
  listeners_ = std::move(changed);
}

void EventLog::Unsubscribe(const EventLogListener* listener) {
  std::shared_ptr<const Listeners> released;  // its listeners may be destroyed: not under the lock
  const std::lock_guard lock(mutex_);
  auto changed = std::make_shared<Listeners>(*listeners_);
  std::erase_if(*changed, [listener](const auto& each) { return each.get() == listener; });
  released = std::exchange(listeners_, std::move(changed));
}

}  // namespace reprise
