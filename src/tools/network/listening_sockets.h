#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// A TCP socket that listens.
struct ListeningSocket {
  std::string address{};  // "127.0.0.1", "::"; an IPv4 address in IPv6 form is given as IPv4
  std::uint16_t port = 0;
  std::string name{};  // as a link in /proc/PID/fd names it: "socket:[12345]"
};

// Those in the text of /proc/net/tcp or tcp6.
std::vector<ListeningSocket> ListeningSockets(std::string_view list);

// Those in an open list, from its beginning, which has the sockets that listen; reads so many bytes at most. Not
// thread-safe for one descriptor.
std::vector<ListeningSocket> ListeningSocketsIn(int list, std::size_t max_bytes);

// Those of this process's network.
std::vector<ListeningSocket> ListeningSocketsHere();

}  // namespace reprise
