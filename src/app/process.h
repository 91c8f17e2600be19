#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "reprise/result.h"

namespace reprise {

// Protects this process's memory, which holds keys: no core dumps (nor of children), no debugger of the same user.
void HideMemory();

// Prepares this process for many connections: descriptors up to the hard limit, SIGPIPE ignored, few heap arenas.
// Leaves the umask alone, for files made by tools and commands; private files are created private. Call it before any
// thread starts.
void PrepareProcess();

// SIGINT and SIGTERM as values: blocked from construction on, in every thread that starts later. Construct it before
// any thread starts.
class StopSignals {
 public:
  // With `on_hangup`, Wait calls it on SIGHUP and goes on waiting, and that signal no longer ends the process.
  explicit StopSignals(std::function<void()> on_hangup = {});
  StopSignals(const StopSignals&) = delete;  // the mask is the process's
  StopSignals& operator=(const StopSignals&) = delete;

  // Blocks until a signal arrives. After that, a second one ends the process at once, with status 128 + its number. If
  // none arrives within a second, the process lets go of memory that it needed to start.
  int Wait();

 private:
  const std::function<void()> on_hangup_;
};

// The interface to a service manager (systemd): sockets from it and messages to it, by the protocols of
// sd_listen_fds(3) and sd_notify(3).
struct ServiceManager {
  std::vector<UniqueFd> sockets;  // to accept connections on; empty if the program listens itself
  std::string notify_address;     // empty if the manager wants no messages

  // Reads the environment variables and unsets them, so that no child takes them for its own. kInvalidArgument if they
  // name missing descriptors. Call it once, before there are threads.
  static Result<ServiceManager> FromEnvironment();

  // Sends a state such as "READY=1", if the manager listens. A failure is only logged, because the manager notices too.
  void Tell(std::string_view state) const;
};

}  // namespace reprise
