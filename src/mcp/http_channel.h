#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mcp/channel.h"
#include "reprise/transport.h"

namespace reprise {

struct HttpServerAddress {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers{};  // sent with every request; may hold secrets
};

// Speaks with a server by streamable HTTP: each message is a POST, answered by JSON or by a stream of events; a GET
// stream brings what the server says by itself. Streams that break are taken up where they were (Last-Event-ID). A
// server that refuses the first POST is tried by the transport of 2024-11-05 (HTTP+SSE). The channel closes when the
// server cannot be reached or has forgotten the session (404; or 400, to a ping too). `transport` must outlive the
// channel.
std::unique_ptr<Channel> OpenHttpChannel(Transport& transport, HttpServerAddress address);

}  // namespace reprise
