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

// The server violated the protocol: reason "mcp_protocol".
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
  std::function<void()> on_closed = {};  // see Session::closed
};

struct RequestOptions {
  std::chrono::milliseconds timeout{30'000};  // without the time that a person takes to answer the server's questions
  std::stop_token stop = {};
  // JSON object text that is added to params as "arguments", byte for byte (except that line breaks between its tokens
  // become spaces); params must have another member. Empty: none.
  std::string_view arguments = {};
  // Additional headers, for stateless requests over HTTP.
  std::vector<std::pair<std::string, std::string>> headers = {};
  const std::vector<McpHeaderParameter>* header_parameters = nullptr;  // of the called tool (CallTool)
  const Span* span = nullptr;  // the parent of the request's span; null: no tracing
  bool may_cancel = true;      // tells the server when the caller stops waiting
  // Called on the waiting thread.
  std::function<void(std::string_view text)> on_progress = {};
  std::function<ToolAnswer(const ToolQuestion&, const std::stop_token&)> ask = {};
};

// A connection to a server over JSON-RPC 2.0: matches responses to requests and answers the server's requests (ping,
// roots/list, elicitation/create). With a server of revision 2026-07-28 (SpeakStateless) each request carries its
// version and this client's capabilities, and the server asks questions only in its results. Thread-safe. The session
// never sends a request twice, except subscriptions. Limits what a server may cost: size and number of messages,
// requests under way, questions, depth.
class Session final : private ChannelListener {
 public:
  Session(std::unique_ptr<Channel> channel, SessionHooks hooks);
  ~Session() override { Close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Sends a request and waits for its result, an object except for tool calls. kCancelled and kDeadlineExceeded do not
  // wait for the server, which is told; kProvider (kMcpError, or the reason of the server's code) if the server answers
  // with an error; kUnavailable (reason "mcp_protocol") if its answer cannot be read; otherwise the reason why the
  // connection ended, at once if it has ended already.
  Result<Json> Request(const std::string& method, Json params, const RequestOptions& options);
  void Notify(const std::string& method, Json params);
  // Sends a request without waiting for its response.
  void Tell(const std::string& method, Json params);
  // Sends subscriptions/listen, which brings notifications as long as the connection lasts. If it is sent again after a
  // break, on_tools_changed is called, because changes may have been missed.
  void Subscribe(Json notifications);

  // Makes all later requests stateless: they are of this version and carry `client` (Implementation). Call only while
  // no request is under way.
  void SpeakStateless(const std::string& version, const Json& client);
  // Reverts SpeakStateless, because the server turned out to be older.
  void SpeakWithSession();
  bool is_stateless() const;
  // This client's capabilities as JSON, and the hooks' roots.
  static Json Capabilities();
  Json Roots() const;

  // As in Channel.
  void Agreed(const std::string& version) { channel_->Agreed(version); }
  void Listen() { channel_->Listen(); }

  // Why nothing more is sent; nullopt while it is.
  std::optional<Error> closed() const;
  // Whether requests wait for their responses. A closed connection may still bring them.
  bool is_waiting() const;
  // Whether the server has answered a tool's call.
  bool has_worked() const;
  // Ends the connection; requests under way fail. Idempotent.
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
    std::optional<std::int64_t> error_code;  // the server's, from JSON-RPC
    std::optional<Result<std::shared_ptr<Json>>> response;
    std::deque<std::string> progress;
    std::deque<std::shared_ptr<Question>> questions;
    std::shared_ptr<Question> asking;  // the question that a person is asked now
    bool can_ask = false;
    bool is_call = false;  // a tool's call: it has taken effect, so its result is read as leniently as possible
  };

  void OnMessage(std::string_view bytes, std::optional<std::int64_t> asked) override;
  void OnRequestFailed(std::int64_t id, Error error) override;
  bool IsWaiting(std::int64_t id) const override;
  void OnEnding(Error why) override;
  void OnClosed(Error why) override;

  bool IsFlood(std::size_t bytes);
  void TakeAmbiguous(std::string_view text, const Error& why, std::optional<std::int64_t> asked);
  void RefuseMessage(const Json& message, const Error& why, std::optional<std::int64_t> asked);
  void Dispatch(Json& message, std::optional<std::int64_t> asked);
  std::optional<std::int64_t> AnsweredBy(const Json& message, std::optional<std::int64_t> asked);
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
  std::map<std::string, std::shared_ptr<Question>> questions_ GUARDED_BY(mutex_);  // the server's open questions
  std::optional<Error> closed_ GUARDED_BY(mutex_);
  bool has_worked_ GUARDED_BY(mutex_) = false;
  bool over_ GUARDED_BY(mutex_) = false;                         // no message is read any more
  std::shared_ptr<const Json> request_meta_ GUARDED_BY(mutex_);  // of every request; null: not stateless

  // --- used by the channel's thread only
  Clock::time_point window_began_;
  std::size_t window_messages_ = 0, window_bytes_ = 0;
  bool acknowledged_ = false;  // whether a subscription was acknowledged

  const std::unique_ptr<Channel> channel_;  // last: ends before what it calls is gone
};

}  // namespace reprise
