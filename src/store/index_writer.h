#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "reprise/ids.h"

namespace reprise {

// Calls a function once for each chat that was scheduled, on a thread of its own: what is scheduled again before that
// costs nothing. Thread-safe. Its thread starts with the first call.
class IndexWriter {
 public:
  using Write = std::function<void(const ChatId&)>;
  // `delay` is the longest that a chat waits; a twentieth of it is a moment.
  IndexWriter(std::chrono::milliseconds delay, Write write) : delay_(delay), write_(std::move(write)) {}
  // Writes everything that is still scheduled, at once. Nothing may be scheduled any more.
  ~IndexWriter() = default;
  IndexWriter(const IndexWriter&) = delete;  // its thread refers to it
  IndexWriter& operator=(const IndexWriter&) = delete;

  // When nothing has been scheduled for a moment: it must not get in the way of turns.
  void WriteLater(const ChatId& chat);
  // As soon as the thread can.
  void WriteNow(const ChatId& chat);

 private:
  using Clock = std::chrono::steady_clock;

  bool StartThread() REQUIRES(mutex_);
  void Run(const std::stop_token& stop);

  const std::chrono::milliseconds delay_;
  const Write write_;
  Mutex mutex_;
  std::condition_variable_any wake_;
  std::set<ChatId> now_ GUARDED_BY(mutex_), later_ GUARDED_BY(mutex_);
  Clock::time_point first_ GUARDED_BY(mutex_){}, latest_ GUARDED_BY(mutex_){};  // when one was scheduled for later
  std::jthread thread_;  // last, so that it ends before what it uses
};

}  // namespace reprise
