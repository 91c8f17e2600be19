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

// A response with its timing.
struct PacedResponse {
  std::string thinking, text;         // UTF-8
  std::chrono::milliseconds pause{};  // between two words; zero: writes everything at once
  Result<ModelResponse> end;          // after all the text
};

// Writes responses word by word, concurrently and with pauses. One thread writes them all and sleeps until the next
// word is due; the first response starts it. Thread-safe.
class PacedWriter {
 public:
  PacedWriter() = default;
  ~PacedWriter();  // responses that are not finished end as if stopped
  PacedWriter(const PacedWriter&) = delete;
  PacedWriter& operator=(const PacedWriter&) = delete;

  // Returns at once; `stream`, `stop` and `done` as in ModelClient::Generate. Throws std::system_error if the thread
  // cannot be started; then nothing has begun.
  void Write(PacedResponse response, ModelStream& stream, std::stop_token stop, ModelClient::Done done);

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    PacedResponse response;
    ModelStream& stream;
    std::stop_token stop;
    ModelClient::Done done;
    std::string_view thinking = {}, text = {};  // the rest
    std::optional<std::stop_callback<std::function<void()>>> on_stop = {};
  };

  void Run(const std::stop_token& over);
  // Writes the next word. True if the response has ended and `done` was called.
  static bool Step(Job& job);
  void WakeFor(const Job* stopped);

  Mutex mutex_;
  std::condition_variable_any wake_;
  std::multimap<Clock::time_point, std::unique_ptr<Job>> jobs_ GUARDED_BY(mutex_);  // by the time of their next word
  std::jthread thread_;  // last, so that it ends before what it uses is gone
};

}  // namespace reprise
