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

// Told when a log has something new. Called without any lock of the log held, by whichever thread published.
class EventLogListener {
 public:
  virtual ~EventLogListener() = default;
  // Must not block. `listeners` is how many listen to this log: one of few may write to its socket right here, which
  // saves a thread switch per event; one of many should hand the work over, so that the publisher is not slowed.
  virtual void OnPublished(std::size_t listeners) noexcept = 0;
};

// The events of one interaction, numbered from 1, framed as SSE bytes (HTML Living Standard, section 9.2), kept once
// and read by any number of subscribers, each at its own offset: no queue and no copy per subscriber. Thread-safe.
//
// Append gathers, Publish shows: events that arrive together reach every subscriber in one write.
class EventLog {
 public:
  EventLog();
  ~EventLog();
  EventLog(const EventLog&) = delete;  // subscribers hold offsets into this very object
  EventLog& operator=(const EventLog&) = delete;

  // Numbers and frames one event, not yet visible. Returns it with its seq filled in.
  AgentEvent Append(std::uint32_t round_index, EventPayload payload, Timestamp at = Now());
  // Frames an event that already has its number and time (from a file). REQUIRES: its seq is above all before it.
  void AppendRecorded(const AgentEvent& event);
  // The same with its data line as it was. REQUIRES: one line.
  void AppendRecorded(std::uint64_t seq, std::string_view name, std::string_view data);
  // Frames that are whole already, with ids of their own: OffsetAfter knows nothing of them.
  void AppendFrames(std::string_view frames);
  // The two deltas of a streaming model, framed without building an event: the path that every token takes.
  void AppendTextDelta(std::uint32_t round_index, std::string_view text);
  void AppendThinkingDelta(std::uint32_t round_index, std::string_view text);

  // The offset just behind what was appended last, and the number of its last event.
  struct Position {
    std::uint64_t offset = 0;
    std::uint64_t last_seq = 0;  // 0: none
    bool closed = false;
  };
  Position appended() const;
  // Makes all that was appended visible and tells the listeners.
  void Publish();
  // The same for what was appended up to `position`, which `appended` gave. Does nothing when that is visible already.
  void PublishUpTo(const Position& position);
  // Publishes; nothing follows. Whoever sees that the log is closed sees all of it.
  void Close();
  // Closes it as it is seen now: what is not visible never will be.
  void CutOff();

  struct View {
    // Valid as long as the log lives; whole frames only at `offset` boundaries given by the log.
    std::string_view bytes;
    bool end = false;  // closed, and `bytes` reach the end
  };
  // The visible bytes from `offset` on, as many as lie together in memory. Empty: nothing there (yet).
  View Read(std::uint64_t offset) const;

  // What lies before `offset` is not read any more, by anybody: its memory may go.
  void Forget(std::uint64_t offset);
  std::uint64_t kept_bytes() const;

  // Where the first event with a number above `seq` begins. kInvalidArgument (reason "cursor_ahead") if `seq` is beyond
  // the last visible event.
  Result<std::uint64_t> OffsetAfter(std::uint64_t seq) const;
  // The same as `appended` of what is visible.
  Position end() const;

  // What the model's last response has cost, as long as the usage event of it is still to come: it comes behind the
  // calls that the response makes, which may wait for a person.
  void SetPendingUsage(const TokenUsage& usage);
  TokenUsage pending_usage() const;

  // Listeners are called for every Publish after this. A listener added to a closed log is never called.
  void Subscribe(std::shared_ptr<EventLogListener> listener);
  void Unsubscribe(const EventLogListener* listener);

 private:
  struct Segment;
  using Segments = std::vector<std::unique_ptr<Segment>>;
  using Listeners = std::vector<std::shared_ptr<EventLogListener>>;

  // What is visible reaches up to here, if it did not before; then the listeners are told.
  void Show(const std::optional<Position>& up_to, bool close);

  // All with mutex_ held.
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
