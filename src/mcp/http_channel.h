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

// Provides tokens for a server that requires them. Thread-safe; only the destructor blocks.
class HttpAuthorizer {
 public:
  virtual ~HttpAuthorizer() = default;
  // The token after "Bearer "; empty if there is none.
  virtual std::string Token() const = 0;
  // The server has rejected a request with the token `refused` (empty: without one); `is_second`: it had rejected the
  // same request before. Calls `done` once, on any thread, within this call or later. ok: the request may be sent again
  // with the then current token.
  virtual void Renew(const OAuthChallenge& challenge, const std::string& refused, bool is_second,
                     std::function<void(Result<void>)> done) = 0;
};

struct HttpServerAddress {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers{};  // sent with every request; may hold secrets
  std::shared_ptr<HttpAuthorizer> authorizer{};                // null: only the headers authorize
};

// Speaks streamable HTTP with a server: each message is a POST, answered by JSON or by a stream of events; a GET stream
// brings the server's own messages. Broken streams are resumed (Last-Event-ID). With a server of revision 2026-07-28
// there is neither GET nor resuming: a request whose stream breaks has failed, and a subscription is sent again. If the
// server rejects a request because it has no token, or one with too few rights, the request is sent again with the
// authorizer's new token, at most twice. If the server rejects the first POST, the transport of 2024-11-05 (HTTP+SSE)
// is tried. Redirects to the same origin are followed with method and body; nothing is sent to another origin. The
// channel ends when the server cannot be reached or has forgotten the session (404; or 400, if a ping gets it too); the
// responses under way are still read.
// `transport` must outlive the channel.
std::unique_ptr<Channel> OpenHttpChannel(Transport& transport, HttpServerAddress address);

}  // namespace reprise
