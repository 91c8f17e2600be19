#pragma once

#include <sys/socket.h>

namespace reprise {

// True if `address` is on the public internet: not loopback, link-local, private, shared (CGNAT), multicast,
// documentation or reserved, and not an IPv6 form (mapped, compatible, NAT64, 6to4, Teredo) of such an IPv4 address.
// False for everything that is not IPv4 or IPv6, and if `length` is too short for its family.
bool IsPublicAddress(const sockaddr* address, socklen_t length);

}  // namespace reprise
