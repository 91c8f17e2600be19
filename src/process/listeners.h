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

inline constexpr std::size_t kMaxListeners = 32;

// The first argument that makes main call OpenListeners.
inline constexpr const char* kOpenListeners = "--open-listeners";

// The arguments that go before a command's. `program` (a descriptor of this program), and `socket` (a Unix socket), are
// the numbers that they have there.
std::vector<std::string> ListenersBefore(int program, int socket, const std::vector<std::uint16_t>& ports);

// The main function there. Returns only if it fails.
int OpenListeners(int argc, char** argv);

// Takes the listeners out of the other end of `socket`, in the order of the ports. nullopt if they do not come because
// there is no program at its other end any more, or `stop`, a descriptor, becomes readable.
std::optional<std::vector<UniqueFd>> TakeListeners(int socket, std::size_t count, int stop);

}  // namespace reprise
