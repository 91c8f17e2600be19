#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/system.h"
#include "reprise/result.h"
#include "tools/network/host_rules.h"

namespace reprise {

// Where a target is, and the way there.
struct Destination {
  sockaddr_storage address{};
  socklen_t size = 0;
};

// An IP address; its size is 0 if the text is none.
Destination AddressOf(const std::string& text, std::uint16_t port);

// The addresses of a target, as this machine resolves its name. "localhost" is loopback, whatever the resolver says.
// Blocks; ends when `stop` is requested. kUnavailable if there are none.
Result<std::vector<Destination>> Resolve(const HostPort& target, const std::stop_token& stop);

// Why nothing may go to this address, whatever the name; empty if it may. A private address needs a rule with the
// host's own name, one of this machine also the port. `closed` are endpoints that no rule opens. No rule opens a server
// of Reprise on this machine, at whatever address and port.
std::string WhyClosed(const Destination& destination, const HostRules::Answer& rule,
                      const std::vector<HostPort>& closed, const std::stop_token& stop);

// Connects a socket of the address's family that never blocks. kUnavailable; also if `stop`, a descriptor, becomes
// readable first.
Result<void> ConnectTo(int socket, const Destination& destination, int stop);

// A connection to the address. kUnavailable; also if `stop` is requested first.
Result<UniqueFd> Connect(const Destination& destination, int stop);

}  // namespace reprise
