#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "reprise/model_client.h"

namespace reprise {

// A response, and the time that it takes.
struct PacedResponse {
  std::string thinking, text;         // UTF-8
  std::chrono::milliseconds pause{};  // between two words; zero: none, and all is said before anything else
  Result<ModelResponse> end;          // when all is said
};

// Writes responses word by word with pauses between the words, side by side. One thread writes them all, sleeps until
// the next word is due, and is started by the first response. Thread-safe.
class PacedWriter {
 public:
  PacedWriter() = default;
  ~PacedWriter();  // what is not said yet ends as if it was stopped
  PacedWriter(const PacedWriter&) = delete;
  PacedWriter& operator=(const PacedWriter&) = delete;

  // Returns at once; `stream`, `stop` and `done` as ModelClient::Generate says. Throws std::system_error, with nothing
  // begun, if the thread cannot be started.
  void Write(PacedResponse response, ModelStream& stream, std::stop_token stop, ModelClient::Done done);

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    PacedResponse response;
    ModelStream& stream;
    std::stop_token stop;
    ModelClient::Done done;
    std::string_view thinking = {}, text = {};  // what is left of it
    std::optional<std::stop_callback<std::function<void()>>> on_stop = {};
  };

  void Run(const std::stop_token& over);
  // Says the next word. True: that was the end, and `done` has been told.
  static bool Step(Job& job);
  void WakeFor(const Job* stopped);

  Mutex mutex_;
  std::condition_variable_any wake_;
  std::multimap<Clock::time_point, std::unique_ptr<Job>> jobs_ GUARDED_BY(mutex_);  // by when their next word is due
  std::jthread thread_;  // last, so that it ends before what it uses is gone
};

}  // namespace reprise
