#include "reprise/event_log.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <variant>

#include "base/json.h"
#include "domain/codec.h"

namespace reprise {

// Segments grow with the log: small at first (most runs are short, and a thousand may be open), large later (a long
// stream should be readable in big pieces). At most a fifth of the memory is unused.
struct EventLog::Segment {
  std::uint64_t begin;
  std::uint64_t first_seq;  // of its first event
  std::string bytes;        // reserved once, so that readers' views stay valid while more is appended
};

namespace {

constexpr std::size_t kSmallestSegment = 2 * 1024, kLargestSegment = 64 * 1024;

// The lines for id, event and data around `data`; the longest number and name fit into the slack.
constexpr std::size_t kFrameSlack = 96;

constexpr std::string_view kIdField = "id: ", kFrameEnd = "\n\n";

// The number of the first event in `frames`.
std::uint64_t SeqOf(std::string_view frames) {
  std::uint64_t seq = 0;
  frames.remove_prefix(kIdField.size());
  std::from_chars(frames.data(), frames.data() + frames.size(), seq);
  return seq;
}

}  // namespace

EventLog::EventLog() : listeners_(std::make_shared<const Listeners>()) {}
EventLog::~EventLog() = default;

// Makes room for a whole frame in one segment.
std::string& EventLog::Reserve(std::uint64_t seq, std::size_t bytes) {
  if (segments_.empty() || segments_.back()->bytes.capacity() - segments_.back()->bytes.size() < bytes) {
    const std::uint64_t kept = segments_.empty() ? 0 : size_ - segments_.front()->begin;  // a log may drop some
    const std::size_t next = std::clamp<std::size_t>(kept / 4, kSmallestSegment, kLargestSegment);
    segments_.push_back(std::make_unique<Segment>());
    segments_.back()->begin = size_;
    segments_.back()->first_seq = seq;
    segments_.back()->bytes.reserve(std::max(next, bytes));
  }
  return segments_.back()->bytes;
}

void EventLog::AppendFrame(std::uint64_t seq, std::string_view name, std::string_view data) {
  std::string& out = Reserve(seq, data.size() + kFrameSlack);
  const std::size_t before = out.size();
  out.append(kIdField).append(std::to_string(seq)).append("\nevent: ").append(name);
  out.append("\ndata: ").append(data).append(kFrameEnd);
  size_ += out.size() - before;
  last_seq_ = seq;
}

AgentEvent EventLog::Append(std::uint32_t round_index, EventPayload payload, Timestamp at) {
  AgentEvent event{.seq = 0, .round_index = round_index, .at = at, .payload = std::move(payload)};
  const std::lock_guard lock(mutex_);
  event.seq = last_seq_ + 1;
  if (std::holds_alternative<event::Usage>(event.payload)) pending_usage_ = {};
  AppendFrame(event.seq, EventName(event.payload), EventData(event));
  return event;
}

void EventLog::AppendRecorded(const AgentEvent& event) {
  AppendRecorded(event.seq, EventName(event.payload), EventData(event));
}

void EventLog::AppendRecorded(std::uint64_t seq, std::string_view name, std::string_view data) {
  const std::lock_guard lock(mutex_);
  AppendFrame(seq, name, data);
}

void EventLog::AppendFrames(std::string_view frames) {
  const std::lock_guard lock(mutex_);
  Reserve(last_seq_, frames.size()).append(frames);
  size_ += frames.size();
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
  const std::string number = std::to_string(++last_seq_);
  std::string& out = Reserve(last_seq_, content.size() + 2 * kFrameSlack);
  const std::size_t before = out.size();
  out.append(kIdField).append(number).append("\nevent: ").append(name);
  out.append("\ndata: {\"type\":\"").append(type).append("\",\"seq\":").append(number);
  out.append(",\"round_index\":").append(std::to_string(round_index));
  out.append(",\"content\":\"").append(content).append("\"}").append(kFrameEnd);
  size_ += out.size() - before;
}

void EventLog::Publish() { Show(std::nullopt, /*close=*/false); }
void EventLog::PublishUpTo(const Position& position) { Show(position, /*close=*/false); }

// In one step, so that a reader never sees a closed log without its last events.
void EventLog::Close() { Show(std::nullopt, /*close=*/true); }

void EventLog::CutOff() {
  {
    const std::lock_guard lock(mutex_);
    size_ = visible_;
    last_seq_ = last_visible_seq_;
  }
  Close();
}

EventLog::Position EventLog::appended() const {
  const std::lock_guard lock(mutex_);
  return {.offset = size_, .last_seq = last_seq_, .closed = closed_};
}

void EventLog::Show(const std::optional<Position>& up_to, bool close) {
  std::shared_ptr<const Listeners> listeners;
  {
    const std::lock_guard lock(mutex_);
    closed_ = closed_ || close;
    const std::uint64_t end = up_to ? up_to->offset : size_;
    if (visible_ >= end && !closed_) return;
    if (visible_ < end) {
      visible_ = end;
      last_visible_seq_ = up_to ? up_to->last_seq : last_seq_;
    }
    listeners = listeners_;
  }
  for (const auto& listener : *listeners) listener->OnPublished(listeners->size());
}

EventLog::Segments::const_iterator EventLog::SegmentAt(std::uint64_t offset) const {
  return std::prev(std::upper_bound(segments_.begin(), segments_.end(), offset,
                                    [](std::uint64_t o, const auto& segment) { return o < segment->begin; }));
}

EventLog::View EventLog::Read(std::uint64_t offset) const {
  const std::lock_guard lock(mutex_);
  if (offset >= visible_) return {.bytes = {}, .end = closed_ && visible_ == size_};
  const Segment& segment = **SegmentAt(offset);
  const std::size_t from = static_cast<std::size_t>(offset - segment.begin);
  const std::size_t to =
      std::min<std::size_t>(segment.bytes.size(), static_cast<std::size_t>(visible_ - segment.begin));
  const bool last = segment.begin + to == size_;
  return {.bytes = std::string_view(segment.bytes.data() + from, to - from), .end = closed_ && last};
}

void EventLog::Forget(std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto is_needed = [&](const auto& segment) { return segment->begin + segment->bytes.size() > offset; };
  segments_.erase(segments_.begin(), std::ranges::find_if(segments_, is_needed));
}

std::uint64_t EventLog::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return segments_.empty() ? 0 : size_ - segments_.front()->begin;
}

void EventLog::SetPendingUsage(const TokenUsage& usage) {
  const std::lock_guard lock(mutex_);
  pending_usage_ = usage;
}

TokenUsage EventLog::pending_usage() const {
  const std::lock_guard lock(mutex_);
  return pending_usage_;
}

Result<std::uint64_t> EventLog::OffsetAfter(std::uint64_t seq) const {
  const std::lock_guard lock(mutex_);
  if (seq > last_visible_seq_) {
    return Fail(Reason::kCursorAhead, "there is no event with that number yet");
  }
  // Starts at the last segment that begins at or before `seq` and goes frame by frame. Data is one line of JSON, so the
  // first empty line ends a frame.
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), seq,
                                      [](std::uint64_t s, const auto& segment) { return s < segment->first_seq; });
  if (after == segments_.begin()) return 0;
  const Segment& segment = **std::prev(after);
  std::string_view frames = segment.bytes;
  while (!frames.empty() && SeqOf(frames) <= seq) frames.remove_prefix(frames.find(kFrameEnd) + kFrameEnd.size());
  return std::min(segment.begin + segment.bytes.size() - frames.size(), visible_);
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
  std::shared_ptr<const Listeners> released;  // may destroy listeners, so not under the lock
  const std::lock_guard lock(mutex_);
  auto changed = std::make_shared<Listeners>(*listeners_);
  std::erase_if(*changed, [listener](const auto& each) { return each.get() == listener; });
  released = std::exchange(listeners_, std::move(changed));
}

}  // namespace reprise
