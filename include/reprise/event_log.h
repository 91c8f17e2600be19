#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/event.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// The publishing thread calls it when a log has new events, without any lock of the log held.
class EventLogListener {
 public:
  virtual ~EventLogListener() = default;
  // Must not block. `listeners` is the number of this log's listeners: if it is small, write to the socket right here,
  // which saves a thread switch per event; if it is large, hand the work over, so that the publisher is not slowed.
  virtual void OnPublished(std::size_t listeners) noexcept = 0;
};

// The events of one interaction, numbered from 1, framed as SSE bytes (HTML Living Standard, section 9.2). They are
// stored once and read by any number of subscribers, each at its own offset: no queue and no copy per subscriber.
// Thread-safe. Append collects, Publish shows: events that arrive together reach every subscriber in one write.
//
//   reprise::EventLog log;
//   log.Append(0, reprise::event::Answer{.content = "Hello"});
//   log.Close();  // publishes too
//   std::uint64_t offset = 0;
//   for (auto view = log.Read(offset); !view.bytes.empty(); view = log.Read(offset)) {
//     Send(view.bytes), offset += view.bytes.size();
//   }
class EventLog {
 public:
  EventLog();
  ~EventLog();
  EventLog(const EventLog&) = delete;  // subscribers hold offsets into this very object
  EventLog& operator=(const EventLog&) = delete;

  // Numbers and frames one event, which stays invisible until Publish. Returns it with its seq.
  AgentEvent Append(std::uint32_t round_index, EventPayload payload, Timestamp at = Now());
  // Frames an event from a file, with its own number and time. REQUIRES: its seq is above all earlier ones.
  void AppendRecorded(const AgentEvent& event);
  // The same with the original data line. REQUIRES: one line.
  void AppendRecorded(std::uint64_t seq, std::string_view name, std::string_view data);
  // Adds whole frames with ids of their own, which OffsetAfter ignores.
  void AppendFrames(std::string_view frames);
  // The two deltas of a streaming model, framed without an event object: the path of every token.
  void AppendTextDelta(std::uint32_t round_index, std::string_view text);
  void AppendThinkingDelta(std::uint32_t round_index, std::string_view text);

  // The offset after the last appended event, and that event's number.
  struct Position {
    std::uint64_t offset = 0;
    std::uint64_t last_seq = 0;  // 0: none
    bool closed = false;
  };
  Position appended() const;
  // Makes all appended events visible and calls the listeners.
  void Publish();
  // Likewise up to `position`, a result of `appended`. Does nothing if that is visible already.
  void PublishUpTo(const Position& position);
  // Publishes; nothing follows. A reader that sees the closed log sees all of it.
  void Close();
  // Closes the log without a Publish: invisible events stay invisible.
  void CutOff();

  struct View {
    // Valid as long as the log lives; whole frames only at `offset` boundaries given by the log.
    std::string_view bytes;
    bool end = false;  // closed, and `bytes` reach the end
  };
  // The visible bytes from `offset` on that are contiguous in memory. Empty: none yet.
  View Read(std::uint64_t offset) const;

  // Releases the memory before `offset`, which no subscriber reads any more.
  void Forget(std::uint64_t offset);
  std::uint64_t kept_bytes() const;

  // The offset of the first event with a number above `seq`. kInvalidArgument (reason "cursor_ahead") if `seq` is
  // beyond the last visible event.
  Result<std::uint64_t> OffsetAfter(std::uint64_t seq) const;
  // The end of the visible events.
  Position end() const;

  // The usage of the model's last response until its usage event arrives. That event follows the response's calls,
  // which may wait for a person.
  void SetPendingUsage(const TokenUsage& usage);
  TokenUsage pending_usage() const;

  // Listeners are called for every later Publish. A listener added to a closed log is never called.
  void Subscribe(std::shared_ptr<EventLogListener> listener);
  void Unsubscribe(const EventLogListener* listener);

 private:
  struct Segment;
  using Segments = std::vector<std::unique_ptr<Segment>>;
  using Listeners = std::vector<std::shared_ptr<EventLogListener>>;

  // Makes events visible up to here, if they were not, and calls the listeners.
  void Show(const std::optional<Position>& up_to, bool close);

  // REQUIRES of these: mutex_ is held.
  Segments::const_iterator SegmentAt(std::uint64_t offset) const;  // REQUIRES: offset < size_
  std::string& Reserve(std::uint64_t seq, std::size_t bytes);
  void AppendFrame(std::uint64_t seq, std::string_view name, std::string_view data);
  void AppendDelta(std::string_view type, std::string_view name, std::uint32_t round_index, std::string_view text);

  mutable std::mutex mutex_;
  Segments segments_;                                  // guarded by mutex_; a segment never moves its bytes
  std::uint64_t size_ = 0, visible_ = 0;               // guarded by mutex_
  std::uint64_t last_seq_ = 0, last_visible_seq_ = 0;  // guarded by mutex_
  bool closed_ = false;                                // guarded by mutex_
  TokenUsage pending_usage_;                           // guarded by mutex_
  std::shared_ptr<const Listeners> listeners_;         // guarded by mutex_; replaced, never changed
};

}  // namespace reprise
