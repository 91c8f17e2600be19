#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "reprise/event_log.h"

namespace reprise {

// Calls back once when a log is closed, so that a client without a stream waits without a thread. Thread-safe.
class CompletionWait : public EventLogListener, public std::enable_shared_from_this<CompletionWait> {
 public:
  // `done` must not block. The thread that closes the log (or calls Begin) calls it with a lock held, and never after
  // Detach.
  CompletionWait(std::shared_ptr<EventLog> log, std::function<void()> done);

  void Begin();
  void Detach();

  void OnPublished(std::size_t listeners) noexcept override;

 private:
  const std::shared_ptr<EventLog> log_;
  Mutex mutex_;
  std::function<void()> done_ GUARDED_BY(mutex_);  // empty once called or detached
};

// Writes one event log to one socket as the body of an SSE response, from an offset of its own. All bytes that are
// ready go out as one chunk, straight from the log's memory. If the log has few listeners, the publishing thread itself
// writes, so an event costs one system call and no thread switch. The socket never blocks that thread.
//
// Thread-safe. Lock order: the stream's mutex, then the log's. `post` is called with the stream's mutex held, the other
// callbacks without.
class EventStream : public EventLogListener, public std::enable_shared_from_this<EventStream> {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    int fd = -1;                // non-blocking; stays open until Detach
    bool chunked = true;        // chunked transfer coding; otherwise the end of the connection ends the body
    std::string head = {};      // the response's head
    std::string preamble = {};  // event frames to send before the log
    std::shared_ptr<EventLog> log = {};
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> live_at = {};  // the byte before which the stream_live frame stands
    bool forgets = false;                       // the log is this stream's alone: forget bytes once sent
    std::chrono::milliseconds heartbeat{15'000};
    std::chrono::milliseconds stall_limit{30'000};
  };
  // Calls to the connection that owns the stream. `post` runs a task later on the connection's thread; the others are
  // called on that thread.
  struct Callbacks {
    std::function<void(std::function<void()>)> post;
    std::function<void()> want_writable;  // call OnWritable when the socket has room
    std::function<void()> finished;       // the kernel has taken the last byte
    std::function<void()> failed;         // the client is gone or has stopped reading
  };

  EventStream(Options options, Callbacks callbacks);

  // Subscribes first and then writes the existing bytes, so none are missed. On the connection's thread.
  void Begin();
  void OnWritable();
  // Sends heartbeats and detects stalled readers. Called now and then on the connection's thread.
  void OnTick(Clock::time_point now);
  // Unsubscribes. Afterwards the stream does not touch the socket and calls no callback. Returns what the socket has
  // taken.
  struct Sent {
    std::uint64_t bytes = 0;
    bool complete = false;  // all of the response
  };
  Sent Detach();

  void OnPublished(std::size_t listeners) noexcept override;

 private:
  enum class State { kOpen, kBlocked, kFinished, kFailed, kDetached };

  // Writes on the calling thread and reports the result to the connection.
  void PumpAndReport();
  // A frame that is not from the log, as a separate chunk.
  std::string Framed(std::string_view frame) const;
  void Report() REQUIRES(mutex_);
  void Pump() REQUIRES(mutex_);
  bool NextChunk() REQUIRES(mutex_);
  void FrameChunk(std::uint64_t end, bool last) REQUIRES(mutex_);
  bool SendChunk() REQUIRES(mutex_);
  std::size_t Gather(std::array<iovec, 16>& parts) const REQUIRES(mutex_);
  void Consume(std::size_t sent) REQUIRES(mutex_);

  Options options_;  // unchanged, but for head and preamble, which are in lead_ and gone once they are sent
  const Callbacks callbacks_;
  std::atomic<bool> pump_posted_{false};

  Mutex mutex_;
  State state_ GUARDED_BY(mutex_) = State::kOpen;
  bool reported_ GUARDED_BY(mutex_) = false;  // the end or failure was reported
  std::string lead_ GUARDED_BY(mutex_);       // what precedes the next chunk: the head and our own frames
  std::uint64_t offset_ GUARDED_BY(mutex_);   // the next byte of the log to send
  // The current chunk: prefix, the log's bytes [offset_, chunk_end_), suffix.
  std::string prefix_ GUARDED_BY(mutex_), suffix_ GUARDED_BY(mutex_);
  std::size_t prefix_sent_ GUARDED_BY(mutex_) = 0, suffix_sent_ GUARDED_BY(mutex_) = 0;
  std::uint64_t chunk_end_ GUARDED_BY(mutex_);
  bool live_pending_ GUARDED_BY(mutex_);
  bool last_chunk_ GUARDED_BY(mutex_) = false;
  std::uint64_t sent_ GUARDED_BY(mutex_) = 0;  // bytes, with the head and our own frames
  Clock::time_point last_progress_ GUARDED_BY(mutex_);
};

}  // namespace reprise
