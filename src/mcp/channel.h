#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "process/supervised_process.h"
#include "reprise/error.h"
#include "reprise/result.h"

namespace reprise {

// The longest message that is taken from a server: a picture of 10 MiB has room in it.
inline constexpr std::size_t kMaxMcpMessageBytes = 16u << 20;
// What becomes of a request whose answer is longer: the server has done what it was asked, and goes on.
Error McpTooLargeError();

// What a session is told by its channel: on the channel's own thread, never two calls at once.
class ChannelListener {
 public:
  virtual ~ChannelListener() = default;
  // Any bytes that claim to be a JSON-RPC message. `asked` is the request that it can only be the answer to: it is all
  // that was sent back.
  virtual void OnMessage(std::string_view message, std::optional<std::int64_t> asked) = 0;
  // The request of this id will get no response.
  virtual void OnRequestFailed(std::int64_t id, Error error) = 0;
  // Whether somebody still waits for the response to this request.
  virtual bool IsWaiting(std::int64_t id) const = 0;
  // The connection is over. Once; nothing follows.
  virtual void OnClosed(Error why) = 0;
};

struct OutgoingMessage {
  std::string json;
  std::optional<std::int64_t> request_id{};  // of a request that wants a response
  bool is_initialize = false;
  // Of revision 2026-07-28: the message says all about itself, and over HTTP these headers repeat some of it.
  bool is_stateless = false;
  std::vector<std::pair<std::string, std::string>> headers{};
  bool is_subscription = false;  // over HTTP it is sent again when the stream that answers it breaks
};

// Carries JSON-RPC messages to a server and back (Model Context Protocol 2026-07-28 and 2025-11-25, "Transports").
// Thread-safe; no call but Close blocks.
class Channel {
 public:
  virtual ~Channel() = default;
  // Before anything else; `listener` must live until Close has returned.
  virtual void Start(ChannelListener& listener) = 0;
  virtual void Send(OutgoingMessage message) = 0;
  // Nobody waits for this response any more.
  virtual void Abandon(std::int64_t) {}
  // The version of the protocol that is spoken from now on; empty: not known yet.
  virtual void Agreed(const std::string& /*version*/) {}
  // The session is initialised: the server may speak first.
  virtual void Listen() {}
  // Ends the connection politely but within a second; returns when the listener will not be called again.
  virtual void Close() = 0;
};

// Finds out which request a message answers that cannot be parsed: it is too large to be kept, nested too deep, or cut
// off. Reads it in pieces and keeps nothing of it but the id, wherever among the members that stands.
class AnswerScanner {
 public:
  void Feed(std::string_view bytes);
  // Of what was fed until now; nullopt: it is no answer, or does not say to what.
  std::optional<std::int64_t> request() const { return is_answer_ ? id_ : std::nullopt; }

 private:
  void EndMember();

  std::size_t depth_ = 0;
  bool in_string_ = false, is_escaped_ = false;
  bool is_answer_ = true;
  std::string name_, word_;  // of the outermost object, as far as they can matter
  std::optional<std::int64_t> id_;
};

// What a program that has ended said of why, out of what it wrote to stderr: the lines that name an error, without the
// frames of the stack and the versions that runtimes write behind them; else its last line. On one line, bounded, valid
// UTF-8 without control characters.
std::string LastWords(std::string_view errors);

// Runs the server as a command and speaks with it in lines over its stdin and stdout. What it prints on stderr is not
// kept, but for the last line, which explains an end. When the command ends, or breaks the rules, the channel closes.
Result<std::unique_ptr<Channel>> OpenStdioChannel(const Command& command);

}  // namespace reprise
