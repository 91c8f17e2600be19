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

// Calls back once when a log has been closed: how a client that wants no stream waits without a thread. Thread-safe.
class CompletionWait : public EventLogListener, public std::enable_shared_from_this<CompletionWait> {
 public:
  // `done` must not block; it is called from the thread that closes the log (or from Begin) with a lock held, and never
  // after Detach.
  CompletionWait(std::shared_ptr<EventLog> log, std::function<void()> done);

  void Begin();
  void Detach();

  void OnPublished(std::size_t listeners) noexcept override;

 private:
  const std::shared_ptr<EventLog> log_;
  Mutex mutex_;
  std::function<void()> done_ GUARDED_BY(mutex_);  // empty once called or detached
};

// Writes one event log to one socket as the body of an SSE response, at its own offset: whatever has gathered goes out
// in one chunk, straight from the log's memory. Where few listen, the publishing thread itself writes, so that an event
// costs one system call and no thread switch; the socket never blocks it.
//
// Thread-safe. Lock order: the stream's mutex, then the log's; `post` is called with the stream's mutex held, the
// other callbacks without.
class EventStream : public EventLogListener, public std::enable_shared_from_this<EventStream> {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    int fd = -1;                // non-blocking; stays open until Detach
    bool chunked = true;        // chunked transfer coding, or bytes up to the end of the connection
    std::string head = {};      // the response's head
    std::string preamble = {};  // event frames of its own, before the log's
    std::shared_ptr<EventLog> log = {};
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> live_at = {};  // where the stream_live frame belongs
    bool forgets = false;                       // the log is this stream's alone: what was sent may go
    std::chrono::milliseconds heartbeat{15'000};
    std::chrono::milliseconds stall_limit{30'000};
  };
  // What the stream wants of the connection that owns it. `post` runs a task on the connection's thread, later; the
  // others are called there.
  struct Callbacks {
    std::function<void(std::function<void()>)> post;
    std::function<void()> want_writable;  // call OnWritable when the socket has room
    std::function<void()> finished;       // the last byte has been handed to the kernel
    std::function<void()> failed;         // the client is gone or does not read
  };

  EventStream(Options options, Callbacks callbacks);

  // Listens, then writes what there is already (in this order: nothing is missed). The connection's thread.
  void Begin();
  void OnWritable();
  // Heartbeats and stalled readers. The connection's thread, every now and then.
  void OnTick(Clock::time_point now);
  // The socket is not touched and no callback called after this. Ends the listening. Tells what the socket has taken.
  struct Sent {
    std::uint64_t bytes = 0;
    bool complete = false;  // all there was to send
  };
  Sent Detach();

  void OnPublished(std::size_t listeners) noexcept override;

 private:
  enum class State { kOpen, kBlocked, kFinished, kFailed, kDetached };

  // Writes on the thread it is called on and tells the connection what came of it.
  void PumpAndReport();
  // A frame of our own as a chunk of its own.
  std::string Framed(std::string_view frame) const;
  void Report() REQUIRES(mutex_);
  void Pump() REQUIRES(mutex_);
  bool NextChunk() REQUIRES(mutex_);
  void FrameChunk(std::uint64_t end, bool last) REQUIRES(mutex_);
  bool SendChunk() REQUIRES(mutex_);
  std::size_t Gather(std::array<iovec, 16>& parts) const REQUIRES(mutex_);
  void Consume(std::size_t sent) REQUIRES(mutex_);

  const Options options_;
  const Callbacks callbacks_;
  std::atomic<bool> pump_posted_{false};

  Mutex mutex_;
  State state_ GUARDED_BY(mutex_) = State::kOpen;
  bool reported_ GUARDED_BY(mutex_) = false;  // the end has been told
  std::string lead_ GUARDED_BY(mutex_);       // what goes before the next chunk: head, frames of our own
  std::uint64_t offset_ GUARDED_BY(mutex_);   // the next byte of the log to send
  // The chunk under way: prefix, the log's bytes [offset_, chunk_end_), suffix.
  std::string prefix_ GUARDED_BY(mutex_), suffix_ GUARDED_BY(mutex_);
  std::size_t prefix_sent_ GUARDED_BY(mutex_) = 0, suffix_sent_ GUARDED_BY(mutex_) = 0;
  std::uint64_t chunk_end_ GUARDED_BY(mutex_);
  bool live_pending_ GUARDED_BY(mutex_);
  bool last_chunk_ GUARDED_BY(mutex_) = false;
  std::uint64_t sent_ GUARDED_BY(mutex_) = 0;  // bytes, head and frames included
  Clock::time_point last_progress_ GUARDED_BY(mutex_);
};

}  // namespace reprise
