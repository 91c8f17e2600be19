#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "process/supervised_process.h"
#include "reprise/error.h"
#include "reprise/result.h"

namespace reprise {

// The longest message that is accepted from a server: it has room for a picture of 10 MiB.
inline constexpr std::size_t kMaxMcpMessageBytes = 16u << 20;
// The deepest. A schema or result that is too deep concerns its own tool alone.
inline constexpr int kMaxMcpMessageDepth = 8 * kMaxJsonDepth;
// The error of a request whose answer is longer. The server has executed the request and stays connected.
Error McpTooLargeError();

// Receives a channel's messages. Called on the channel's own thread, never two calls at once.
class ChannelListener {
 public:
  virtual ~ChannelListener() = default;
  // Any bytes that claim to be a JSON-RPC message. `asked` is the request that the message must answer, because it is
  // the whole body of that request's response.
  virtual void OnMessage(std::string_view message, std::optional<std::int64_t> asked) = 0;
  // The request of this id will get no response.
  virtual void OnRequestFailed(std::int64_t id, Error error) = 0;
  // Whether a caller still waits for the response to this request.
  virtual bool IsWaiting(std::int64_t id) const = 0;
  // Nothing more is sent: the server has ended the session or cannot be reached. Requests under way may still be
  // answered; then OnClosed follows.
  virtual void OnEnding(Error why) = 0;
  // The connection has ended. Called once, and no other call follows.
  virtual void OnClosed(Error why) = 0;
};

struct OutgoingMessage {
  std::string json;
  std::optional<std::int64_t> request_id{};  // of a request that expects a response
  bool is_initialize = false;
  // Of revision 2026-07-28: the message needs no session. Over HTTP these headers repeat some of it.
  bool is_stateless = false;
  std::vector<std::pair<std::string, std::string>> headers{};
  bool is_subscription = false;  // over HTTP it is sent again when its response stream breaks
};

// Carries JSON-RPC messages to a server and back (Model Context Protocol 2026-07-28 and 2025-11-25, "Transports").
// Thread-safe; no call but Close blocks.
class Channel {
 public:
  virtual ~Channel() = default;
  // Before anything else; `listener` must live until Close has returned.
  virtual void Start(ChannelListener& listener) = 0;
  virtual void Send(OutgoingMessage message) = 0;
  // The caller no longer waits for this response.
  virtual void Abandon(std::int64_t) {}
  // Sets the protocol version of all later messages; empty: not known yet.
  virtual void Agreed(const std::string& /*version*/) {}
  // The session is initialised, so the server may send messages on its own.
  virtual void Listen() {}
  // Ends the connection politely but within a second; returns when the listener will not be called again.
  virtual void Close() = 0;
};

// Finds the request that an unparsable message answers: one that is too large to keep, nested too deep, or cut off.
// Reads it in pieces and keeps only the id, which may be any of its members.
class AnswerScanner {
 public:
  void Feed(std::string_view bytes);
  // According to the bytes so far. nullopt if they are no answer or name no request.
  std::optional<std::int64_t> request() const { return is_answer_ ? id_ : std::nullopt; }

 private:
  void EndMember();

  std::size_t depth_ = 0;
  bool in_string_ = false, is_escaped_ = false;
  bool is_answer_ = true;
  std::string name_, word_;  // of the outermost object; long ones are cut
  std::optional<std::int64_t> id_;
};

// The reason that an ended program gave on stderr: the lines that name an error, without the stack frames and versions
// that runtimes add; else its last line. Returned as one line of bounded length, in valid UTF-8 without control
// characters.
std::string LastWords(std::string_view errors);

// Runs the server as a command and exchanges lines with it over its stdin and stdout. Keeps only the end of its stderr,
// to explain why it ended (LastWords). The channel closes when the command ends or violates the protocol.
Result<std::unique_ptr<Channel>> OpenStdioChannel(const Command& command);

}  // namespace reprise
