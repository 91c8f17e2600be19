#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/sse_parser.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/acp/agent.h"
#include "client/line_channel.h"
#include "client/server_access.h"
#include "client/server_client.h"
#include "client/server_link.h"
#include "doors/mcp_door/message.h"
#include "mcp/header_parameters.h"
#include "reprise/transport.h"
#include "terminal/console.h"
#include "wire/request_values.h"

namespace reprise {
namespace {

constexpr int kMaxDepth = kMaxJsonDepth + 16;
constexpr std::size_t kMostRelays = 100;
constexpr const char* kInitialize = "initialize";

std::string HeaderIn(const HttpHeaders& headers, std::string_view name) {
  const auto found = std::ranges::find_if(headers, [&](const auto& each) { return each.first == name; });
  return found == headers.end() ? std::string() : found->second;
}

std::string VersionIn(const Json& message) {
  return TextMember(MemberOf(MemberOf(message, "params"), "_meta"), "io.modelcontextprotocol/protocolVersion");
}

bool IsRequest(const Json& message) { return message.contains("method") && message.contains("id"); }
bool IsNotificationOrAnswer(const Json& message) {
  if (message.contains("method")) return !message.contains("id") && MemberOf(message, "method").is_string();
  return message.contains("id") && (message.contains("result") || message.contains("error"));
}

// Serves the Model Context Protocol on standard input and output: forwards each line to the running server's /mcp and
// writes the server's messages as lines. It knows only what HTTP adds to the protocol: the session of older clients,
// and the headers that repeat members of newer clients' messages. One thread, one loop.
class McpBridge {
 public:
  McpBridge(ServerLink& link, int in, int out) : link_(link), channel_(in, out) {}

  // Runs until the client closes its end. Returns the exit status.
  int Run() {
    while (!channel_.is_broken()) {
      while (auto line = channel_.Next()) Take(*line);
      for (std::size_t i = 0; i < relays_.size(); ++i) Proceed(*relays_[i]);  // may add relays
      std::erase_if(relays_, [](const auto& relay) { return relay->is_over; });
      channel_.Flush();
      if (channel_.input_ended()) break;
      Wait();
    }
    channel_.FlushLast();
    return kExitOk;
  }

 private:
  enum class Purpose {
    kClient,    // sent by the client
    kGreeting,  // sent by us, to get a new session
  };

  // A message sent to the server, and its answer as it arrives.
  class Relay {
   public:
    Relay(ServerClient& server, Json sent, HttpHeaders headers, Purpose why, bool again)
        : message(std::move(sent)),
          purpose(why),
          is_again(again),
          sending_(server.Post("/mcp", message, std::move(headers))) {}

    const Json message;
    const Purpose purpose;
    const bool is_again;  // not sent another time if the server is gone or has lost the session
    int status = 0;
    HttpHeaders headers{};
    std::optional<Result<void>> ended{};
    std::string body{};  // of an answer that is not an event stream
    SseParser events{};
    Json cancellation = nullptr;  // sent when the answer to this message has begun
    bool was_answered = false;
    bool is_over = false;

    bool is_stateless() const { return !VersionIn(message).empty() && !mcp_door::IsSessionVersion(VersionIn(message)); }
    int descriptor() const { return sending_->answer().descriptor(); }
    // `bytes` gets the piece that `events` reads, so it must outlive that reading.
    void Receive(std::string& bytes) {
      auto taken = sending_->answer().Take(bytes);
      status = taken.status;
      headers = std::move(taken.headers);
      ended = std::move(taken.ended);
      if (HeaderIn(headers, "content-type").starts_with("text/event-stream")) {
        events.Feed(bytes);
      } else {
        body += bytes;
      }
    }

   private:
    const std::unique_ptr<SentMessage> sending_;
  };

  // Waits until there is something to do.
  void Wait() {
    std::vector<pollfd> waits = {{channel_.in(), POLLIN, 0}, {channel_.has_unsent() ? channel_.out() : -1, POLLOUT, 0}};
    for (const auto& relay : relays_) {
      // A slow reader is not given more: the answers wait in memory.
      waits.push_back({channel_.is_crowded() ? -1 : relay->descriptor(), POLLIN, 0});
    }
    if (::poll(waits.data(), waits.size(), -1) < 0) return;
    if (waits[0].revents != 0) channel_.Read();
  }

  void Take(const LineChannel::Line& line) {
    if (line.too_long) return Refuse(nullptr, mcp_door::kInvalidRequest, "a message is too long, and was not read");
    auto message = ParseJson(line.text, kMaxDepth);
    if (!message) return Refuse(nullptr, mcp_door::kParseError, message.error().message);
    const Json& id = MemberOf(*message, "id");
    if (!message->is_object()) return Refuse(nullptr, mcp_door::kInvalidRequest, "a message must be a JSON object");
    if (auto reached = link_.Reach(""); !reached) {
      if (IsRequest(*message)) Refuse(id, mcp_door::kInternalError, reached.error().message);
      return;
    }
    if (TextMember(*message, "method") == "notifications/cancelled") return Cancel(*message);
    if (TextMember(*message, "method") == kInitialize) {
      greeting_ = *message;
      session_.clear();
      version_.clear();
    }
    // Messages of a session wait until it exists.
    const bool is_stateless = !VersionIn(*message).empty() && !mcp_door::IsSessionVersion(VersionIn(*message));
    if (!is_stateless && IsGreeting()) return ungreeted_.push_back(*std::move(message));
    Forward(*std::move(message), Purpose::kClient, /*is_again=*/false);
  }

  // Closing its connection cancels a newer client's request. An older client's needs a message after the request.
  void Cancel(const Json& notification) {
    const Json& id = MemberOf(MemberOf(notification, "params"), "requestId");
    if (std::erase_if(ungreeted_, [&](const Json& each) { return IsRequest(each) && each["id"] == id; }) > 0) return;
    Relay* const relay = RelayOf(id);
    if (relay == nullptr) return;
    if (relay->is_stateless()) {
      relay->is_over = true;
    } else if (relay->status == 0) {
      relay->cancellation = notification;
    } else {
      Forward(notification, Purpose::kClient, /*is_again=*/false);
    }
  }

  // Whether an "initialize" waits for its answer.
  bool IsGreeting() const {
    return std::ranges::any_of(relays_, [](const auto& relay) {
      return !relay->is_over && !relay->is_stateless() && TextMember(relay->message, "method") == kInitialize;
    });
  }

  void Forward(Json message, Purpose purpose, bool is_again) {
    if (relays_.size() >= kMostRelays) {
      if (IsRequest(message)) Refuse(message["id"], mcp_door::kInternalError, "too many requests are under way");
      return;
    }
    HttpHeaders headers = HeadersFor(message);
    relays_.push_back(
        std::make_unique<Relay>(link_.server(), std::move(message), std::move(headers), purpose, is_again));
  }

  void Proceed(Relay& relay) {
    if (relay.is_over) return;
    std::string bytes;
    relay.Receive(bytes);
    while (const auto event = relay.events.Next()) Say(relay, std::string(event->data));
    if (relay.status != 0 && !relay.cancellation.is_null()) {
      Forward(std::exchange(relay.cancellation, nullptr), Purpose::kClient, /*is_again=*/false);
    }
    if (!relay.ended) return;
    End(relay);
    if (TextMember(relay.message, "method") != kInitialize || IsGreeting()) return;
    for (Json& message : std::exchange(ungreeted_, {}))
      Forward(std::move(message), Purpose::kClient, /*is_again=*/true);
  }

  void End(Relay& relay) {
    relay.is_over = true;
    const bool is_request = IsRequest(relay.message);
    const auto refuse = [&](const std::string& why) {
      if (is_request && !relay.was_answered && relay.purpose == Purpose::kClient) {
        Refuse(relay.message["id"], mcp_door::kInternalError, why);
      }
    };
    if (!*relay.ended) {
      const Error& error = relay.ended->error();
      // No server received any of it, so it is safe to send it again.
      const bool is_unreached = HowLost(error) == Loss::kNeverReached;
      if (is_unreached && !relay.is_again && link_.FindAgain(/*may_start=*/true)) {
        return Forward(relay.message, relay.purpose, /*is_again=*/true);
      }
      if (!is_unreached) {
        return refuse(
            "the connection to the server broke; what it has begun is in its chat, where `approve` follows it");
      }
      return refuse(NotAnswering(error, link_.server()).message);
    }
    const bool is_greeting = TextMember(relay.message, "method") == kInitialize && !relay.is_stateless();
    if (is_greeting && relay.status == 200) {
      session_ = HeaderIn(relay.headers, "mcp-session-id");
      const auto said = ParseJson(relay.body, kMaxDepth);
      version_ = said ? TextMember(MemberOf(*said, "result"), "protocolVersion") : "";
      if (relay.purpose == Purpose::kClient) Say(relay, relay.body);
      return;
    }
    // A restarted server has lost the session. We get a new one, which the client does not notice.
    if (relay.status == 404 && !relay.is_stateless() && !relay.is_again && !greeting_.is_null() && !is_greeting) {
      const bool is_greeting_under_way = !ungreeted_.empty();
      if (is_request) ungreeted_.push_back(relay.message);  // an answer to the old server's question is dropped
      if (!is_request || is_greeting_under_way) return;
      session_.clear();
      return Forward(greeting_, Purpose::kGreeting, /*is_again=*/true);
    }
    // A refused notification or answer gets no error: the client would take an error with that id for the answer to a
    // request of its own.
    if (!relay.body.empty() && (is_request || !IsNotificationOrAnswer(relay.message))) Say(relay, relay.body);
    if (relay.was_answered || !is_request) return;
    const auto refusal = ParseJson(relay.body, kMaxDepth);
    const std::string why = refusal ? TextMember(MemberOf(*refusal, "error"), "message") : "";
    // A cancelled call gets no answer.
    if (relay.status >= 400)
      refuse(why.empty() ? "the server answers with status " + std::to_string(relay.status) : why);
  }

  void Say(Relay& relay, const std::string& text) {
    const auto said = ParseJson(text, kMaxDepth);
    if (!said || !said->is_object() || !said->contains("jsonrpc")) return;
    if (!said->contains("method") && IsRequest(relay.message)) relay.was_answered = true;
    if (relay.purpose == Purpose::kClient) channel_.Send(*said);
  }

  void Refuse(const Json& id, int code, const std::string& why) {
    channel_.Send({{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", why}}}});
  }

  HttpHeaders HeadersFor(const Json& message) const {
    HttpHeaders headers = {{"Accept", "application/json, text/event-stream"}};
    if (TextMember(message, "method") == "tools/call") {
      const Json run = link_.RunOptions("");
      const std::pair<const char*, std::string> settings[] = {{kWorkspaceHeader, link_.folder()},
                                                              {kApprovalModeHeader, TextMember(run, "approval_mode")},
                                                              {kModelHeader, TextMember(run, "model")}};
      for (const auto& [name, value] : settings) {
        if (!value.empty()) headers.emplace_back(name, PercentEncoded(value));
      }
    }
    const std::string version = VersionIn(message);
    if (!version.empty() && !mcp_door::IsSessionVersion(version)) {
      const Json& params = MemberOf(message, "params");
      headers.emplace_back("MCP-Protocol-Version", HeaderText(version));
      headers.emplace_back("Mcp-Method", HeaderText(TextMember(message, "method")));
      const std::string name = params.contains("name") ? TextMember(params, "name") : TextMember(params, "uri");
      if (!name.empty()) headers.emplace_back("Mcp-Name", HeaderText(name));
    } else if (!session_.empty()) {
      headers.emplace_back("Mcp-Session-Id", session_);
      headers.emplace_back("MCP-Protocol-Version", version_);
    }
    return headers;
  }

  Relay* RelayOf(const Json& id) const {
    const auto found = std::ranges::find_if(relays_, [&](const auto& relay) {
      return !relay->is_over && relay->message.contains("method") && relay->message.contains("id") &&
             relay->message["id"] == id;
    });
    return found == relays_.end() ? nullptr : found->get();
  }

  ServerLink& link_;
  LineChannel channel_;
  std::vector<std::unique_ptr<Relay>> relays_;  // requests under way
  Json greeting_ = nullptr;                     // the client's initialize, for a server that lost the session
  std::string session_, version_;               // from its answer; empty: no session
  std::vector<Json> ungreeted_;                 // messages that wait for a session
};

}  // namespace

Exited RunBridge(const CommandLine& line, const Environment& environment) {
  const bool is_acp = line.command == "acp";
  if (::isatty(STDIN_FILENO) != 0) {
    return Misused(line.command + " speaks with " + (is_acp ? "an editor" : "a client of MCP") +
                   ", which starts it; `reprise chat` is for a person at a terminal");
  }
  const auto named = TRY(OfUse(NamedServer(line.url, environment)));
  ServerLink link(line.flags, environment, named, /*restarts=*/false);
  TRY(OfUse(link.Check()));
  ::signal(SIGPIPE, SIG_IGN);  // the failed write ends this process when the client is gone
  const int status =
      is_acp ? acp::RunAgent(link, STDIN_FILENO, STDOUT_FILENO) : McpBridge(link, STDIN_FILENO, STDOUT_FILENO).Run();
  return link.is_refused() ? kExitFailure : status;
}

}  // namespace reprise
