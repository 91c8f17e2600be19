#include "wire/event_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace reprise {

CompletionWait::CompletionWait(std::shared_ptr<EventLog> log, std::function<void()> done)
    : log_(std::move(log)), done_(std::move(done)) {}

void CompletionWait::Begin() {
  log_->Subscribe(shared_from_this());
  OnPublished(1);  // the log may have been closed before
}

void CompletionWait::Detach() {
  {
    const MutexLock lock(mutex_);
    done_ = nullptr;
  }
  log_->Unsubscribe(this);
}

void CompletionWait::OnPublished(std::size_t /*listeners*/) noexcept {
  if (!log_->end().closed) return;
  const MutexLock lock(mutex_);
  if (auto done = std::exchange(done_, nullptr)) done();
}

namespace {

// The publisher itself writes for up to this many listeners. For more it would wait too long for system calls.
constexpr std::size_t kInlineListeners = 4;
constexpr std::uint64_t kMaxChunk = 64 * 1024;
constexpr std::string_view kLiveFrame = "event: stream_live\ndata: {}\n\n";
constexpr std::string_view kHeartbeat = ": keep-alive\n\n";

std::string ChunkSize(std::uint64_t bytes) {
  char line[20];
  const int length = std::snprintf(line, sizeof line, "%llx\r\n", static_cast<unsigned long long>(bytes));
  return {line, static_cast<std::size_t>(length)};
}

iovec Bytes(std::string_view bytes) { return {const_cast<char*>(bytes.data()), bytes.size()}; }

}  // namespace

EventStream::EventStream(Options options, Callbacks callbacks)
    : options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      lead_(std::exchange(options_.head, {})),
      offset_(options_.offset),
      chunk_end_(options_.offset),
      live_pending_(options_.live_at.has_value()),
      last_progress_(Clock::now()) {
  if (!options_.preamble.empty()) lead_ += Framed(std::exchange(options_.preamble, {}));
}

void EventStream::Begin() {
  options_.log->Subscribe(shared_from_this());
  PumpAndReport();
}

void EventStream::OnWritable() {
  {
    const MutexLock lock(mutex_);
    if (state_ == State::kBlocked) state_ = State::kOpen;
  }
  PumpAndReport();
}

void EventStream::OnTick(Clock::time_point now) {
  {
    const MutexLock lock(mutex_);
    const auto silence = now - last_progress_;
    if (state_ == State::kBlocked && silence > options_.stall_limit) state_ = State::kFailed;
    const bool idle = state_ == State::kOpen && prefix_sent_ == prefix_.size() && suffix_sent_ == suffix_.size() &&
                      offset_ == chunk_end_ && options_.log->end().offset == offset_;
    if (state_ != State::kFailed && !(idle && silence >= options_.heartbeat)) return;
    if (idle) lead_ += Framed(kHeartbeat);
  }
  PumpAndReport();
}

EventStream::Sent EventStream::Detach() {
  Sent sent;
  {
    const MutexLock lock(mutex_);
    sent = {.bytes = sent_, .complete = state_ == State::kFinished};
    state_ = State::kDetached;
  }
  options_.log->Unsubscribe(this);
  return sent;
}

void EventStream::OnPublished(std::size_t listeners) noexcept {
  if (listeners <= kInlineListeners) return PumpAndReport();
  if (pump_posted_.exchange(true)) return;  // the posted call will send these bytes too
  const MutexLock lock(mutex_);
  if (state_ == State::kDetached) return;
  callbacks_.post([self = shared_from_this()] {
    self->pump_posted_.store(false);
    self->PumpAndReport();
  });
}

void EventStream::PumpAndReport() {
  const MutexLock lock(mutex_);
  if (state_ == State::kOpen) {
    Pump();
    if (state_ != State::kOpen) Report();
  } else if (state_ == State::kFailed) {
    Report();
  }
}

// Posts with the mutex held, because nothing may be posted after Detach, when the loop may be gone.
void EventStream::Report() {
  if (std::exchange(reported_, state_ != State::kBlocked)) return;
  callbacks_.post([self = shared_from_this(), state = state_] {
    {
      const MutexLock lock(self->mutex_);
      if (self->state_ == State::kDetached) return;
    }
    if (state == State::kBlocked) return self->callbacks_.want_writable();
    if (state == State::kFinished) return self->callbacks_.finished();
    self->callbacks_.failed();
  });
}

void EventStream::Pump() {
  do {
    if (!SendChunk()) return;
    if (last_chunk_) {
      state_ = State::kFinished;
      return;
    }
  } while (NextChunk());
}

// Frames the bytes that are ready, about 64 KiB at most. False if there are none to send.
bool EventStream::NextChunk() {
  if (live_pending_ && offset_ == *options_.live_at) {
    live_pending_ = false;
    // If the interaction has finished, nothing live follows its last event, so the frame is left out.
    const EventLog::View next = options_.log->Read(offset_);
    if (!next.end || !next.bytes.empty()) lead_ += Framed(kLiveFrame);
  }
  const std::uint64_t limit = live_pending_ ? std::min(offset_ + kMaxChunk, *options_.live_at) : offset_ + kMaxChunk;
  bool at_end_of_log = false;
  std::uint64_t end = offset_;
  while (end < limit) {
    const EventLog::View view = options_.log->Read(end);
    at_end_of_log = view.end;
    if (view.bytes.empty()) break;
    end += view.bytes.size();
  }
  if (live_pending_ && end > *options_.live_at) {
    end = *options_.live_at;
    at_end_of_log = false;
  }
  if (end == offset_ && !at_end_of_log && lead_.empty()) return false;
  FrameChunk(end, at_end_of_log);
  return true;
}

void EventStream::FrameChunk(std::uint64_t end, bool last) {
  prefix_sent_ = suffix_sent_ = 0;
  chunk_end_ = end;
  last_chunk_ = last;
  std::exchange(lead_, {}).swap(prefix_);  // an assignment would keep the room that the head took
  suffix_.clear();
  if (!options_.chunked) return;
  if (end > offset_) {
    prefix_ += ChunkSize(end - offset_);
    suffix_ = "\r\n";
  }
  if (last) suffix_ += "0\r\n\r\n";
}

std::string EventStream::Framed(std::string_view frame) const {
  if (!options_.chunked) return std::string(frame);
  std::string framed = ChunkSize(frame.size());
  framed.append(frame).append("\r\n");
  return framed;
}

// Sends the current chunk. True once all of it is sent.
bool EventStream::SendChunk() {
  while (true) {
    std::array<iovec, 16> parts;
    const std::size_t count = Gather(parts);
    if (count == 0) return true;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(options_.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      Consume(static_cast<std::size_t>(sent));
      last_progress_ = Clock::now();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      state_ = State::kBlocked;
      return false;
    } else if (errno != EINTR) {
      state_ = State::kFailed;
      return false;
    }
  }
}

std::size_t EventStream::Gather(std::array<iovec, 16>& parts) const {
  std::size_t count = 0;
  if (prefix_sent_ < prefix_.size()) parts[count++] = Bytes(std::string_view(prefix_).substr(prefix_sent_));
  std::uint64_t at = offset_;
  while (at < chunk_end_ && count < parts.size() - 1) {
    const std::string_view bytes = options_.log->Read(at).bytes.substr(0, static_cast<std::size_t>(chunk_end_ - at));
    parts[count++] = Bytes(bytes);
    at += bytes.size();
  }
  if (at == chunk_end_ && suffix_sent_ < suffix_.size()) {
    parts[count++] = Bytes(std::string_view(suffix_).substr(suffix_sent_));
  }
  return count;
}

void EventStream::Consume(std::size_t sent) {
  sent_ += sent;
  const std::size_t prefix = std::min(sent, prefix_.size() - prefix_sent_);
  prefix_sent_ += prefix;
  sent -= prefix;
  const std::uint64_t body = std::min<std::uint64_t>(sent, chunk_end_ - offset_);
  offset_ += body;
  if (options_.forgets) options_.log->Forget(offset_);
  suffix_sent_ += sent - static_cast<std::size_t>(body);
}

}  // namespace reprise
