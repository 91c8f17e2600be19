#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/mutex.h"
#include "mcp/channel.h"
#include "mcp/header_parameters.h"
#include "reprise/result.h"
#include "reprise/telemetry.h"
#include "reprise/tool.h"

namespace reprise {

// The server does not keep to the protocol: reason "mcp_protocol".
Error McpProtocolError(std::string message);

// A folder that the server is told to work in.
struct SessionRoot {
  std::string path, name;
};

// What a session does for its server. The functions are called on the channel's thread and must not block.
struct SessionHooks {
  std::vector<SessionRoot> roots;
  std::function<void()> on_tools_changed = {};
  std::function<void(std::string_view level, std::string_view text)> on_log = {};
  std::function<void()> on_closed = {};
};

struct RequestOptions {
  std::chrono::milliseconds timeout{30'000};  // time that a person takes to answer the server does not count
  std::stop_token stop = {};
  // JSON object text that goes into params as "arguments", byte for byte (but for line breaks between its tokens, which
  // become spaces); params has another member. Empty: none.
  std::string_view arguments = {};
  // Beside those that every request has, for a server that is spoken to over HTTP without a session.
  std::vector<std::pair<std::string, std::string>> headers = {};
  const std::vector<McpHeaderParameter>* header_parameters = nullptr;  // of the tool that is called (CallTool)
  const Span* span = nullptr;  // that the request is a part of; null: nobody watches
  bool may_cancel = true;      // tell the server when nobody waits any more
  // Called on the thread that waits.
  std::function<void(std::string_view text)> on_progress = {};
  std::function<ToolAnswer(const ToolQuestion&, const std::stop_token&)> ask = {};
};

// The reason of the error of a server that wants the user to open URLs first ("URLElicitationRequiredError");
// Error::details_json is the error's data.

// The reasons of errors that only servers of revision 2026-07-28 answer with; Error::details_json is the error's data.

// One connection with a server in JSON-RPC 2.0: finds the request to each response and answers what the server asks
// (ping, roots/list, elicitation/create). With a server of revision 2026-07-28 (SpeakStateless) each request says which
// version it is of and what this client can do, and the server asks by its results alone. Thread-safe. No request is
// ever sent twice, but for subscriptions. What a server may cost is limited: size and number of messages, requests
// under way, questions, depth.
class Session final : private ChannelListener {
 public:
  Session(std::unique_ptr<Channel> channel, SessionHooks hooks);
  ~Session() override { Close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Sends a request and waits for its result, an object. kCancelled and kDeadlineExceeded at once when that is so, the
  // server is told; kProvider (reason "mcp_error", or kMcpUrlsRequired) if the server answers with an error;
  // kUnavailable (reason "mcp_protocol") if its answer cannot be read; otherwise why the connection broke: at once if
  // it has.
  Result<Json> Request(const std::string& method, Json params, const RequestOptions& options);
  void Notify(const std::string& method, Json params);
  // Sends a request whose response nobody waits for.
  void Tell(const std::string& method, Json params);
  // Sends subscriptions/listen: what it brings are notifications, for as long as the connection lasts. Where it is
  // taken up again after a break, on_tools_changed is called, as changes may have been missed.
  void Subscribe(Json notifications);

  // Every request from now on is of this version, which has no sessions, and carries `client` (Implementation).
  // Between requests only.
  void SpeakStateless(const std::string& version, const Json& client);
  // Takes that back: the server turned out to be older.
  void SpeakWithSession();
  bool is_stateless() const;
  // What the server is told of this client's abilities, as JSON. Roots are those of the hooks.
  static Json Capabilities();
  Json Roots() const;

  // As in Channel.
  void Agreed(const std::string& version) { channel_->Agreed(version); }
  void Listen() { channel_->Listen(); }

  // Why the connection is over; none while it is not.
  std::optional<Error> closed() const;
  // Ends it; requests under way fail. Idempotent.
  void Close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Question {
    std::string id;  // JSON text, as the server wrote it
    ToolQuestion question;
    std::stop_source over;
  };
  struct Pending {
    std::condition_variable_any wake;
    std::optional<std::int64_t> error_code;  // of the server's, in JSON-RPC
    std::optional<Result<std::shared_ptr<Json>>> response;
    std::deque<std::string> progress;
    std::deque<std::shared_ptr<Question>> questions;
    std::shared_ptr<Question> asking;  // a person is asked this now
    bool can_ask = false;
    bool is_call = false;  // of a tool: what it has done is done, so its result is read as well as it can be
  };

  void OnMessage(std::string_view bytes, std::optional<std::int64_t> asked) override;
  void OnRequestFailed(std::int64_t id, Error error) override;
  bool IsWaiting(std::int64_t id) const override;
  void OnClosed(Error why) override;

  bool IsFlood(std::size_t bytes);
  void TakeAmbiguous(std::string_view text, const Error& why, std::optional<std::int64_t> asked);
  void RefuseMessage(const Json& message, const Error& why);
  void Dispatch(Json& message, std::optional<std::int64_t> asked);
  void TakeResponse(Json& message, std::optional<std::int64_t> asked);
  std::optional<std::int64_t> OnlyRequest() const;
  bool IsCallWaiting(std::int64_t id) const;
  void TakeRequest(const std::string& method, const Json& message);
  void TakeNotification(const std::string& method, const Json& message);
  void TakeProgress(const Json& params);
  void TakeQuestion(const Json& id, const Json& params);
  void Answer(const std::shared_ptr<Question>& question, const RequestOptions& options);
  void Dismiss(const std::deque<std::shared_ptr<Question>>& questions);
  void Reply(const Json& id, Json result);
  void ReplyError(const Json& id, int code, const std::string& message);
  Result<Json> Await(Pending& pending, std::int64_t id, const RequestOptions& options);
  void Settle(std::int64_t id, Result<std::shared_ptr<Json>> response,
              std::optional<std::int64_t> error_code = std::nullopt);

  const SessionHooks hooks_;

  mutable Mutex mutex_;
  std::int64_t next_id_ GUARDED_BY(mutex_) = 1;
  std::map<std::int64_t, std::shared_ptr<Pending>> pending_ GUARDED_BY(mutex_);    // requests under way
  std::map<std::string, std::shared_ptr<Question>> questions_ GUARDED_BY(mutex_);  // of the server, not answered yet
  std::optional<Error> closed_ GUARDED_BY(mutex_);
  std::shared_ptr<const Json> request_meta_ GUARDED_BY(mutex_);  // of every request; null: there is a session

  // --- the channel's thread's
  Clock::time_point window_began_;
  std::size_t window_messages_ = 0, window_bytes_ = 0;
  bool acknowledged_ = false;  // a subscription

  const std::unique_ptr<Channel> channel_;  // last: ends before what it calls is gone
};

}  // namespace reprise
