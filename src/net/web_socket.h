#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "reprise/result.h"
#include "reprise/transport.h"

namespace reprise {

// The client's side of a WebSocket (RFC 6455) without a socket: the caller carries the bytes in and out. Boost.Beast
// speaks the protocol. Never waits. Not thread-safe.
class WebSocket {
 public:
  static constexpr std::size_t kMaxMessageBytes = 4u << 20;

  // How the server has answered the handshake. `body`: of a refusal.
  using OnHead = std::function<void(int status, HttpHeaders headers, std::string_view body)>;
  // A message of the server. False: no more are wanted.
  using OnMessage = std::function<bool(std::string_view message)>;

  // Begins the handshake. Both are called within Take, never after they have ended the socket.
  WebSocket(const HttpRequest& request, OnHead on_head, OnMessage on_message);
  ~WebSocket();
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  // Takes bytes from the server.
  void Take(std::string_view bytes);
  // The connection has ended: no more bytes come.
  void TakeEnd();
  // Bytes for the server that Sent has not removed yet.
  std::string_view to_send() const;
  void Sent(std::size_t bytes);
  // How the socket has ended, once it has: ok if the server closed it, refused the handshake or no more messages are
  // wanted. kUnavailable (reason "connection_lost") if the connection was lost, the server broke the protocol, or a
  // message was longer than kMaxMessageBytes.
  const std::optional<Result<void>>& ended() const;

 private:
  struct Connection;
  const std::unique_ptr<Connection> connection_;
};

}  // namespace reprise
