#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "reprise/result.h"

namespace reprise {

// Where a browser comes back to after a log-in: a port of this machine (RFC 8252, 7.3) that answers one path.
class LoopbackRedirect {
 public:
  // `port` 0: any that is free. kConflict if it is in use.
  static Result<LoopbackRedirect> Open(std::uint16_t port);

  std::string uri() const;  // "http://127.0.0.1:PORT/mcp/callback"
  // The query of the first request to this address, which begins with `uri()`, that has this `state`; without its
  // question mark. Others are told that there is nothing here. Blocks until then; kCancelled when `stop` is requested.
  Result<std::string> Await(const std::string& address, const std::string& state, const std::stop_token& stop) const;

 private:
  LoopbackRedirect(UniqueFd socket, std::uint16_t port) : socket_(std::move(socket)), port_(port) {}
  UniqueFd socket_;
  std::uint16_t port_ = 0;
};

}  // namespace reprise
