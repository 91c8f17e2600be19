#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"

namespace reprise {

// Listening sockets of a sandbox's own loopback, which its maker serves from outside: the program of the sandbox first
// becomes OpenListeners, which sends them out over a socket that it inherits, keeps none, and becomes the command.
// Ways in are sent out likewise: unconnected sockets of the sandbox's network, with which the maker reaches what
// listens there. A socket belongs for good to the network in which it was made, so nobody has to enter the sandbox
// later, and nothing in it can be asked for more.

inline constexpr std::size_t kMaxListeners = 32;
// The kernel bounds what all Unix sockets of a user carry by the limit of open files, and each way is two of them.
inline constexpr std::size_t kMaxWaysIn = 16;

// The first argument that makes main call OpenListeners.
inline constexpr const char* kOpenListeners = "--open-listeners";

// The numbers that the descriptors have there; -1: there is none.
struct InnerDescriptors {
  int program = -1;                  // this program
  int listeners = -1, ways_in = -1;  // Unix sockets that keep messages apart (SOCK_SEQPACKET)
};
// The arguments that go before a command's.
std::vector<std::string> ListenersBefore(const InnerDescriptors& inner, const std::vector<std::uint16_t>& ports);

// The main function there. Returns only if it fails.
int OpenListeners(int argc, char** argv);

// Takes the listeners out of the other end of `socket`, in the order of the ports. nullopt if they do not come because
// there is no program at its other end any more, or `stop`, a descriptor, becomes readable.
std::optional<std::vector<UniqueFd>> TakeListeners(int socket, std::size_t count, int stop);

// Takes the next message out of the other end of `ways_in`; empty if none has come. The first has the lists of the
// network's TCP sockets (/proc/net/tcp and tcp6, open for reading), each other one a way in: a TCP socket for IPv4 and
// one for IPv6, which never block. A list or a socket for IPv6 is missing if the system has none. The messages wait in
// the socket, so ways that nobody takes cost no descriptor.
std::vector<UniqueFd> TakeWayIn(int ways_in);

}  // namespace reprise
