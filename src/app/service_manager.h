#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "reprise/result.h"

namespace reprise {

// What a service manager (systemd) hands to a program that it starts, and is told by it: the protocols of
// sd_listen_fds(3) and sd_notify(3).
struct ServiceManager {
  std::vector<UniqueFd> sockets;  // what to accept connections on; none: the program listens for itself
  std::string notify_address;     // empty: nobody wants to be told anything

  // Takes what the environment says. The variables are unset: no child may take them for its own. kInvalidArgument if
  // they name descriptors that are not there. Call it before there are threads, and once.
  static Result<ServiceManager> FromEnvironment();

  // Sends a state such as "READY=1", if anybody listens. A failure is logged: the manager will say what it missed.
  void Tell(std::string_view state) const;
};

}  // namespace reprise
