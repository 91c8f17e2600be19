#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/queues.h"
#include "base/system.h"

namespace reprise {

// A task of a command that may take long.
struct LongTask {
  std::string doing;        // "checking"
  std::string things;       // "files"
  std::uint64_t total = 0;  // 0 if unknown
  // The counter's steps for each thing: 2 if it is counted when written and again when compared.
  std::uint64_t steps_each = 1;
};

// "checking 1,204 of 3,030 files, 350/s, 5 s left" in at most `columns` characters: without the rate if that is too
// long, then without the time, then cut.
std::string ProgressText(const LongTask& task, std::uint64_t steps_done, std::chrono::milliseconds elapsed,
                         std::size_t columns);

// While it lives, a terminal at stderr shows the progress of a WorkCounter: one line, drawn at most 30 times a second,
// and only after 30 milliseconds. Print, Warn and the log remove it before they write (ProgressPause). Draws nothing on
// a pipe, on a dumb terminal, or in the background.
//
// Even without a terminal, SIGINT, SIGTERM and SIGHUP remove the line and stop the work at its next step, so that it
// leaves nothing half-made; End passes the signal on. A second signal ends the process at once. One at a time; make it
// after all questions to the person, and before other threads start.
class Progress {
 public:
  // `counter` must outlive it.
  Progress(WorkCounter& counter, const Environment& environment);
  ~Progress();                         // End
  Progress(const Progress&) = delete;  // its thread refers to it
  Progress& operator=(const Progress&) = delete;

  // Shows this task from now on, and resets the counter.
  void Begin(LongTask task);
  // Adds further things to the total. REQUIRES: the task's total is known, or 0 because there were none yet.
  void Expect(std::uint64_t more_things);

  // Whether anything is ever drawn; if not, no total is needed.
  bool is_shown() const { return is_shown_; }
  // Whether a signal has arrived.
  bool interrupted() const { return counter_.stop_requested(); }

  // Removes the line for good. Raises a signal that has arrived, which ends the process unless it is ignored.
  void End();

 private:
  class Watcher;

  WorkCounter& counter_;
  const bool is_shown_;
  std::unique_ptr<Watcher> watcher_;  // null after the end
};

// Keeps the line off the terminal while it lives, so that others can write there.
class ProgressPause {
 public:
  ProgressPause();
  ~ProgressPause();
  ProgressPause(const ProgressPause&) = delete;  // it is on the stack of the function that writes
  ProgressPause& operator=(const ProgressPause&) = delete;

  // Whether the line may come back after it.
  bool is_needed() const { return lock_.owns_lock(); }

 private:
  std::unique_lock<Mutex> lock_;
};

}  // namespace reprise
