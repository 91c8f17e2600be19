#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/network/host_rules.h"

namespace reprise {

// What the first bytes of a connection say. Pure functions over the bytes that have come so far.

enum class Reading { kMore, kDone, kRefused };

// A client's request to a proxy.
struct ProxyRequest {
  Reading reading = Reading::kMore;
  std::string why{};        // kRefused
  HostPort target{};        // kDone
  bool is_tunnel = true;    // else plain HTTP
  std::string forwarded{};  // of plain HTTP: what the server is sent in place of the head
  std::size_t size = 0;     // bytes of the request; what follows belongs to the connection
};
// HTTP: CONNECT, or a request with an absolute http:// URI. Its Host, if there is one, must be the URI's.
ProxyRequest ReadHttpProxyRequest(std::string_view bytes);
// SOCKS5 after the greeting (CONNECT only).
ProxyRequest ReadSocksRequest(std::string_view bytes);

// Whether the first bytes that a client sends through a tunnel may go to `host`. For TLS the server name must be that
// host (none for an address), in the clear: no encrypted ClientHello. For HTTP the Host must be it. Other protocols
// may.
struct FirstBytes {
  Reading reading = Reading::kMore;
  std::string why{};  // kRefused
};
FirstBytes CheckFirstBytes(std::string_view bytes, const HostPort& target);

}  // namespace reprise
