#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/environment.h"
#include "base/mutex.h"
#include "base/queues.h"

namespace reprise {

// What a command does that may take long.
struct LongTask {
  std::string doing;        // "checking"
  std::string things;       // "files"
  std::uint64_t total = 0;  // 0: not known
  // Steps of the counter that each thing takes: 2 if it is counted when it is written and again when it is compared.
  std::uint64_t steps_each = 1;
};

// "checking 1,204 of 3,030 files, 350/s, 5 s left" in at most `columns` characters: first the rate is left out, then
// the time, then the end of the rest.
std::string ProgressText(const LongTask& task, std::uint64_t steps_done, std::chrono::milliseconds elapsed,
                         std::size_t columns);

// While it lives, a terminal at stderr shows how far a WorkCounter has come: one line, drawn again at most ten times a
// second, and not before 0.3 seconds have passed. Print, Warn and the log take it away before they write
// (ProgressPause). Nothing is drawn on a pipe, on a dumb terminal, or from the background.
//
// On a terminal or not, SIGINT, SIGTERM and SIGHUP take the line away and stop the work at its next step, so that it
// leaves nothing half-made; End hands the signal on. A second one ends the process at once. One at a time; make it when
// nothing more is to be asked of the person, and before other threads are started.
class Progress {
 public:
  // `counter` must outlive it.
  Progress(WorkCounter& counter, const Environment& environment);
  ~Progress();                         // End
  Progress(const Progress&) = delete;  // its thread refers to it
  Progress& operator=(const Progress&) = delete;

  // What is shown from now on. The counter begins anew.
  void Begin(LongTask task);
  // More of the things have turned up. REQUIRES: the task's total is known, or 0 as there were none yet.
  void Expect(std::uint64_t more_things);

  // Whether anything is ever drawn: if not, no total need be found out.
  bool is_shown() const { return is_shown_; }
  // Whether a signal has come.
  bool interrupted() const { return counter_.stop_requested(); }

  // Takes the line away for good. If a signal has come, the process gets it now, which ends it unless it is ignored.
  void End();

 private:
  class Watcher;

  WorkCounter& counter_;
  const bool is_shown_;
  std::unique_ptr<Watcher> watcher_;  // null: it has ended
};

// Keeps the line off the terminal while it lives, so that something else can be written there.
class ProgressPause {
 public:
  ProgressPause();
  ~ProgressPause();
  ProgressPause(const ProgressPause&) = delete;  // it is on the stack of the function that writes
  ProgressPause& operator=(const ProgressPause&) = delete;

  // Whether there may be a line again after it.
  bool is_needed() const { return lock_.owns_lock(); }

 private:
  std::unique_lock<Mutex> lock_;
};

}  // namespace reprise
