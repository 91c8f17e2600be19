#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "process/supervised_process.h"
#include "reprise/result.h"

namespace reprise {

// Gathers what a command prints: the beginning and the end of it, and how much is missing between. Passes the first
// part on while it comes in, in whole characters.
class OutputCapture {
 public:
  // `on_output` may be empty. It gets at most `max_bytes` in all.
  OutputCapture(std::size_t max_bytes, std::function<void(std::string_view)> on_output);

  void Add(std::string_view bytes);
  // No more will come. Valid UTF-8.
  std::string Finish();

 private:
  void Stream(std::string_view bytes);

  const std::size_t max_head_, max_tail_, max_streamed_;
  const std::function<void(std::string_view)> on_output_;
  std::string head_, tail_;
  std::uint64_t total_ = 0;
  std::size_t streamed_ = 0;
  std::string held_back_;  // the beginning of a character
};

struct CommandLimits {
  std::chrono::milliseconds timeout{60'000};
  std::chrono::milliseconds grace{
      500};  // between SIGTERM and SIGKILL after the time-out; a cancelled command gets none
  std::size_t max_output_bytes = 64 * 1024;
};

struct CommandResult {
  enum class End { kExited, kSignalled, kTimedOut, kCancelled };
  End end = End::kExited;
  int status = 0;            // exit status or number of the signal
  std::string output;        // stdout and stderr as they came, valid UTF-8, cut in the middle if too long
  bool left_behind = false;  // something of it could not be ended
};

// Runs a command with stdin from /dev/null, in a session of its own, with no descriptor but 0, 1 and 2. Returns when it
// has ended and every process it started is gone, daemons included. Thread-safe; `on_output` is called on this thread.
// kUnavailable if it cannot be started.
Result<CommandResult> RunCommand(const Command& command, const CommandLimits& limits, std::stop_token stop,
                                 std::function<void(std::string_view)> on_output = {});

// The same with `input` on stdin; the output is stdout alone, what it says on stderr is thrown away.
Result<CommandResult> RunCommandOn(std::string_view input, const Command& command, const CommandLimits& limits,
                                   std::stop_token stop);

}  // namespace reprise
