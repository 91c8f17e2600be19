#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mcp/channel.h"
#include "mcp/oauth_documents.h"
#include "reprise/transport.h"

namespace reprise {

// Has tokens for a server that wants some. Thread-safe; nothing but the destructor blocks.
class HttpAuthorizer {
 public:
  virtual ~HttpAuthorizer() = default;
  // What goes behind "Bearer "; empty: there is none.
  virtual std::string Token() const = 0;
  // The server has refused a request that had this token, or none; `is_second` after it had refused an earlier one.
  // Calls `done` once, on any thread, within this call or later: ok: it may be sent again, with the token that there is
  // then.
  virtual void Renew(const OAuthChallenge& challenge, const std::string& refused, bool is_second,
                     std::function<void(Result<void>)> done) = 0;
};

struct HttpServerAddress {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers{};  // sent with every request; may hold secrets
  std::shared_ptr<HttpAuthorizer> authorizer{};                // null: the headers are all there is
};

// Speaks with a server by streamable HTTP: each message is a POST, answered by JSON or by a stream of events; a GET
// stream brings what the server says by itself. Streams that break are taken up where they were (Last-Event-ID). With a
// server of revision 2026-07-28 there is neither GET nor taking up: a request whose stream breaks has failed, and a
// subscription is sent again. A request that is refused for want of a token, or
// of one for more, is sent again with what the authorizer gets, twice at most. A server that refuses the first POST is
// tried by the transport of 2024-11-05 (HTTP+SSE). Redirects to the same origin are followed with method and body; to
// another one nothing is sent. The channel closes when the server cannot be reached or has forgotten the session (404;
// or 400, to a ping too). `transport` must outlive the channel.
std::unique_ptr<Channel> OpenHttpChannel(Transport& transport, HttpServerAddress address);

}  // namespace reprise
