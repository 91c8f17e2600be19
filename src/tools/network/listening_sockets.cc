#include "tools/network/listening_sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <sstream>

#include "base/system.h"

namespace reprise {

namespace {

constexpr int kHex = 16;
constexpr std::size_t kWord = 8;  // hexadecimal digits of 32 bits

template <typename Number>
std::optional<Number> HexNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, kHex);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The kernel prints the words of an address in the byte order of the machine.
std::string AddressIn(std::string_view words) {
  std::array<std::uint32_t, 4> raw{};
  if (words.size() != kWord && words.size() != raw.size() * kWord) return {};
  for (std::size_t i = 0; i * kWord < words.size(); ++i) {
    const auto word = HexNumber<std::uint32_t>(words.substr(i * kWord, kWord));
    if (!word) return {};
    raw.at(i) = *word;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  in6_addr v6{};
  std::memcpy(&v6, raw.data(), sizeof v6);
  const bool is_mapped = words.size() > kWord && IN6_IS_ADDR_V4MAPPED(&v6);
  const bool is_v4 = words.size() == kWord || is_mapped;
  const void* const from = is_mapped ? &raw[3] : raw.data();
  return ::inet_ntop(is_v4 ? AF_INET : AF_INET6, from, text.data(), text.size()) == nullptr ? "" : text.data();
}

}  // namespace

std::vector<ListeningSocket> ListeningSockets(std::string_view list) {
  std::vector<ListeningSocket> found;
  std::istringstream lines{std::string(list)};
  std::string line;
  std::getline(lines, line);  // the heading
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, skipped, inode;
    words >> number >> local >> remote >> state >> skipped >> skipped >> skipped >> skipped >> skipped >> inode;
    const std::size_t colon = local.find(':');
    if (state != "0A" || colon == local.npos || inode.empty()) continue;
    const auto port = HexNumber<std::uint16_t>(std::string_view(local).substr(colon + 1));
    std::string address = AddressIn(std::string_view(local).substr(0, colon));
    if (!port || address.empty()) continue;
    found.push_back({.address = std::move(address), .port = *port, .name = "socket:[" + inode + "]"});
  }
  return found;
}

std::vector<ListeningSocket> ListeningSocketsIn(int list, std::size_t max_bytes) {
  std::string text;
  std::array<char, 16 * 1024> buffer;
  if (::lseek(list, 0, SEEK_SET) != 0) return {};
  for (ssize_t got; text.size() < max_bytes && (got = ::read(list, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  if (!text.empty() && text.back() != '\n') text.erase(text.rfind('\n') + 1);  // the rest of a line that was cut
  return ListeningSockets(text);
}

std::vector<ListeningSocket> ListeningSocketsHere() {
  std::vector<ListeningSocket> all;
  for (const char* const name : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    const UniqueFd list(::open(name, O_RDONLY | O_CLOEXEC));
    if (!list) continue;
    for (ListeningSocket& each : ListeningSocketsIn(list.get(), std::numeric_limits<std::size_t>::max()))
      all.push_back(std::move(each));
  }
  return all;
}

}  // namespace reprise
