#include "base/public_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

#include "base/text.h"

namespace reprise {
namespace {

struct Ipv4Range {
  std::uint32_t network;
  int bits;
};

constexpr std::uint32_t Ipv4(unsigned a, unsigned b, unsigned c, unsigned d) { return a << 24 | b << 16 | c << 8 | d; }

// The ranges of the IANA special-purpose registry that are not globally reachable, and multicast.
constexpr std::array kNotPublic{
    Ipv4Range{Ipv4(0, 0, 0, 0), 8},        // "this network"; 0.0.0.0 reaches this machine
    Ipv4Range{Ipv4(10, 0, 0, 0), 8},       // private
    Ipv4Range{Ipv4(100, 64, 0, 0), 10},    // shared by carriers (CGNAT)
    Ipv4Range{Ipv4(127, 0, 0, 0), 8},      // loopback
    Ipv4Range{Ipv4(169, 254, 0, 0), 16},   // link-local, cloud metadata
    Ipv4Range{Ipv4(172, 16, 0, 0), 12},    // private
    Ipv4Range{Ipv4(192, 0, 0, 0), 24},     // protocol assignments
    Ipv4Range{Ipv4(192, 0, 2, 0), 24},     // documentation
    Ipv4Range{Ipv4(192, 88, 99, 0), 24},   // 6to4 relays
    Ipv4Range{Ipv4(192, 168, 0, 0), 16},   // private
    Ipv4Range{Ipv4(198, 18, 0, 0), 15},    // benchmarks
    Ipv4Range{Ipv4(198, 51, 100, 0), 24},  // documentation
    Ipv4Range{Ipv4(203, 0, 113, 0), 24},   // documentation
    Ipv4Range{Ipv4(224, 0, 0, 0), 4},      // multicast
    Ipv4Range{Ipv4(240, 0, 0, 0), 4},      // reserved, broadcast
};

bool IsPublicIpv4(std::uint32_t address) {
  for (const Ipv4Range& range : kNotPublic) {
    if ((address ^ range.network) >> (32 - range.bits) == 0) return false;
  }
  return true;
}

std::uint32_t Ipv4At(const unsigned char* bytes) { return Ipv4(bytes[0], bytes[1], bytes[2], bytes[3]); }

bool StartsWith(const unsigned char* bytes, std::initializer_list<unsigned char> prefix) {
  return std::equal(prefix.begin(), prefix.end(), bytes);
}

bool IsPublicIpv6(const unsigned char* a) {
  // Translated and tunnelled addresses are as public as the IPv4 address in them.
  if (StartsWith(a, {0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0})) return IsPublicIpv4(Ipv4At(a + 12));  // NAT64
  if (StartsWith(a, {0x20, 0x02})) return IsPublicIpv4(Ipv4At(a + 2));                                    // 6to4
  // Only 2000::/3 is global unicast: this check alone refuses ::, ::1, mapped and compatible IPv4, local NAT64
  // (64:ff9b:1::/48), discard, unique-local, link-local, site-local and multicast addresses.
  if ((a[0] & 0xe0) != 0x20) return false;
  if (StartsWith(a, {0x20, 0x01}) && a[2] < 0x02) return false;  // 2001::/23: Teredo, ORCHID, benchmarks
  if (StartsWith(a, {0x20, 0x01, 0x0d, 0xb8})) return false;     // documentation
  return !(StartsWith(a, {0x3f, 0xff}) && (a[2] & 0xf0) == 0);   // documentation, 3fff::/20
}

}  // namespace

bool IsPublicAddress(const sockaddr* address, socklen_t length) {
  // Copied out, because curl's buffer promises no alignment for the larger structures.
  if (address->sa_family == AF_INET && length >= static_cast<socklen_t>(sizeof(sockaddr_in))) {
    sockaddr_in ipv4;
    std::memcpy(&ipv4, address, sizeof ipv4);
    return IsPublicIpv4(ntohl(ipv4.sin_addr.s_addr));
  }
  if (address->sa_family == AF_INET6 && length >= static_cast<socklen_t>(sizeof(sockaddr_in6))) {
    sockaddr_in6 ipv6;
    std::memcpy(&ipv6, address, sizeof ipv6);
    // A mapped address (::ffff:a.b.c.d) connects over IPv4. There is no good reason to use one, so all are refused.
    return IsPublicIpv6(ipv6.sin6_addr.s6_addr);
  }
  return false;
}

std::string_view HostOf(std::string_view url) {
  if (const std::size_t scheme = url.find("://"); scheme != url.npos) url.remove_prefix(scheme + 3);
  std::string_view host = url.substr(0, url.find_first_of("/?#"));
  if (const std::size_t user = host.rfind('@'); user != host.npos) host.remove_prefix(user + 1);
  const std::size_t port = host.find_last_of(":]");
  return port != host.npos && host[port] == ':' ? host.substr(0, port) : host;
}

std::string WithoutUser(std::string url) {
  const std::size_t host = url.find("//") + 2, at = url.substr(0, url.find_first_of("/?#", host)).rfind('@');
  if (host >= 2 && at != std::string::npos && at >= host) url.erase(host, at + 1 - host);
  return url;
}

bool IsLoopbackHost(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string name = LowerCase(host);
  if (name == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, name.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, name.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace reprise
