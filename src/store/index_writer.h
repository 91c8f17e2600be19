#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "reprise/ids.h"

namespace reprise {

// Calls a function once for each chat that was scheduled, on a thread of its own: what is scheduled again before that
// costs nothing. Thread-safe. Its thread starts with the first call.
class IndexWriter {
 public:
  using Write = std::function<void(const ChatId&)>;
  IndexWriter(std::chrono::milliseconds delay, Write write) : delay_(delay), write_(std::move(write)) {}
  // Writes everything that is still scheduled, at once. Nothing may be scheduled any more.
  ~IndexWriter() = default;
  IndexWriter(const IndexWriter&) = delete;  // its thread refers to it
  IndexWriter& operator=(const IndexWriter&) = delete;

  void WriteNow(const ChatId& chat);    // as soon as the thread can
  void WriteLater(const ChatId& chat);  // after the delay, with what gathers until then

 private:
  void Schedule(std::set<ChatId>& chats, const ChatId& chat);  // with mutex_ held
  void Run(const std::stop_token& stop);

  const std::chrono::milliseconds delay_;
  const Write write_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::set<ChatId> now_, later_;                     // guarded by mutex_
  std::chrono::steady_clock::time_point later_due_;  // guarded by mutex_
  std::jthread thread_;                              // guarded by mutex_; last, so that it ends before what it uses
};

}  // namespace reprise
