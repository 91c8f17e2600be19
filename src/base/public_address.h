#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

namespace reprise {

// True if `address` is on the public internet: not loopback, link-local, private, shared (CGNAT), multicast,
// documentation or reserved, and not an IPv6 form (mapped, compatible, NAT64, 6to4, Teredo) of such an IPv4 address.
// False for everything that is not IPv4 or IPv6, and if `length` is too short for its family.
bool IsPublicAddress(const sockaddr* address, socklen_t length);

// The host of a URL, without user and port; an IPv6 address keeps its brackets. Empty if there is none.
std::string_view HostOf(std::string_view url);

// The URL without user and password.
std::string WithoutUser(std::string url);

// True for a host that this machine alone reaches: "localhost" in any case, 127.0.0.0/8 as four numbers, and
// ::1 with or without brackets.
bool IsLoopbackHost(std::string_view host);

}  // namespace reprise
