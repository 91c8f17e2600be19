#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "reprise/result.h"

namespace reprise {

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
