#pragma once

#include <functional>

namespace reprise {

// Keeps this process's memory, which holds keys, to itself: no core dump (nor of a process that it starts), and no
// debugger of the same user.
void HideMemory();

// Prepares this process for serving many connections: descriptors up to the hard limit, SIGPIPE ignored, few heap
// arenas. The umask stays as it is, for what tools and commands make; what is private is made so by whoever makes it.
// Call before any thread starts.
void PrepareProcess();

// SIGINT and SIGTERM as values: blocked from construction on, in every thread that starts later. Construct before any
// thread starts.
class StopSignals {
 public:
  // If there is something to do on SIGHUP, Wait does it and goes on waiting; that signal no longer ends the process.
  explicit StopSignals(std::function<void()> on_hangup = {});
  StopSignals(const StopSignals&) = delete;  // the mask is the process's
  StopSignals& operator=(const StopSignals&) = delete;

  // Blocks until one arrives. From then on a second one ends the process at once, with status 128 + its number.
  int Wait();

 private:
  const std::function<void()> on_hangup_;
};

}  // namespace reprise
