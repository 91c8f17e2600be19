#include "mcp/http_channel.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stop_token>
#include <vector>

#include "base/json.h"
#include "base/mutex.h"
#include "base/sse_parser.h"
#include "base/timed_queue.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNoLimit = std::chrono::hours(24);  // calls have deadlines of their own; streams may be silent
constexpr milliseconds kGoodbye{500};
constexpr milliseconds kProbeLimit{10'000};
constexpr milliseconds kFirstRetry{1000}, kShortestRetry{50}, kLongestRetry{30'000};
constexpr int kMaxResumes = 5;  // without having got anything in between
constexpr std::size_t kMaxExchanges = 64;
constexpr std::size_t kMaxWaitingBytes = 4 * kMaxMcpMessageBytes;
constexpr std::size_t kMaxErrorBytes = 64 * 1024;
constexpr int kMaxRenewals = 2;  // of tokens, for one request

Error Broken(std::string reason, std::string message) {
  return Error{.code = ErrorCode::kUnavailable, .reason = std::move(reason), .message = std::move(message)};
}

// "https://host:1/a/b?c" -> "https://host:1".
std::string Origin(const std::string& url) {
  const std::size_t host = url.find("://");
  return host == std::string::npos ? "" : url.substr(0, url.find_first_of("/?#", host + 3));
}

// The URL of an HTTP+SSE server's `endpoint` event; empty if it leads to another server.
std::string ResolveEndpoint(const std::string& base, std::string_view reference) {
  const std::string origin = Origin(base);
  if (reference.starts_with("//")) return "";
  if (reference.starts_with('/')) return origin + std::string(reference);
  if (reference.find("://") != std::string_view::npos) {
    return Origin(std::string(reference)) == origin ? std::string(reference) : "";
  }
  const std::string path = base.substr(0, base.find_first_of("?#"));
  const std::size_t slash = path.rfind('/');
  return (slash < origin.size() ? origin + "/" : path.substr(0, slash + 1)) + std::string(reference);
}

bool IsEventStream(std::string_view content_type) { return content_type.starts_with("text/event-stream"); }
bool IsJson(std::string_view content_type) { return content_type.starts_with("application/json"); }

// What an exchange of request and response is for.
enum class Purpose {
  kPost,       // carries a message
  kSubscribe,  // carries a message whose answer is a stream that goes on
  kResume,     // takes up the stream that answered a POST
  kListen,     // what the server says by itself
  kLegacy,     // the one stream of HTTP+SSE
  kProbe,      // a ping that tells whether the session is there
};

class HttpChannel;

// One request under way. OnHead and OnData are called on the transport's thread; the rest belongs to the queue's.
class Exchange final : public HttpResponseHandler {
 public:
  Exchange(HttpChannel& channel, Purpose its_purpose) : purpose(its_purpose), channel_(channel) {}

  void OnHead(int status, const HttpHeaders& headers) override;
  bool OnData(std::string_view bytes) override;

  const Purpose purpose;
  std::optional<std::int64_t> request_id;
  OutgoingMessage initialize;  // kept to be sent once more, to an older server
  bool is_initialize = false;
  bool is_stateless = false;
  OutgoingMessage message;  // kept to be sent again: a subscription, or with another token
  std::string token;        // that it was sent with
  int renewals = 0;         // of tokens for this message
  std::stop_source stop;
  int fruitless = 0;  // streams of this kind before this one that brought nothing
  std::string resumed_from;

  // --- after the end
  int status = 0;
  std::optional<OAuthChallenge> challenge;
  std::string body;  // JSON; of an error only if the message was stateless
  bool is_stream = false, too_long = false;
  std::size_t events = 0;
  SseParser parser{kMaxMcpMessageBytes};

  std::string last_event_id() const { return parser.last_event_id().empty() ? resumed_from : parser.last_event_id(); }

 private:
  HttpChannel& channel_;
  bool is_json_ = false;
};

class HttpChannel final : public Channel {
 public:
  HttpChannel(Transport& transport, HttpServerAddress address)
      : transport_(transport), address_(std::move(address)), post_url_(address_.url) {}
  ~HttpChannel() override { Close(); }

  void Start(ChannelListener& listener) override { listener_ = &listener; }

  void Send(OutgoingMessage message) override {
    queue_.Post([this, message = std::move(message)]() mutable { Post(std::move(message), 0); });
  }

  void Abandon(std::int64_t id) override {
    queue_.Post([this, id] {
      for (const auto& exchange : exchanges_) {
        if (exchange->request_id == id) exchange->stop.request_stop();
      }
    });
  }

  void Agreed(const std::string& version) override {
    const MutexLock lock(mutex_);
    version_ = version;
  }

  void Listen() override {
    queue_.Post([this] {
      if (!legacy_) OpenStream(Purpose::kListen, "", std::nullopt, 0);
    });
  }

  void Close() override {
    if (std::exchange(closed_, true)) return;
    {
      const MutexLock lock(alive_->mutex);
      alive_->is_open = false;
    }
    queue_.Stop();  // from here on this thread is alone with exchanges_, but for the ends that Ended counts
    for (const auto& exchange : exchanges_) exchange->stop.request_stop();
    std::string session;
    {
      const MutexLock lock(mutex_);
      session = session_id_;
    }
    if (!session.empty() && !forgotten_) SayGoodbye();
    MutexLock lock(mutex_);
    all_ended_.wait(lock, [this]() REQUIRES(mutex_) { return under_way_ == 0; });
  }

  // --- for exchanges, on the transport's thread ---
  void Deliver(std::string message) {
    {
      const MutexLock lock(mutex_);
      waiting_bytes_ += message.size();
      if (waiting_bytes_ > kMaxWaitingBytes) return;  // Delivered closes the channel
    }
    queue_.Post([this, message = std::move(message)] { Delivered(message); });
  }
  void TakeEndpoint(std::string reference) {
    queue_.Post([this, reference = std::move(reference)] { OpenLegacy(reference); });
  }
  void TakeSession(const std::string& id) {
    const MutexLock lock(mutex_);
    if (session_id_.empty()) session_id_ = id;
  }

 private:
  HttpRequest MakeRequest(const std::string& method, const std::string& url, bool is_stateless = false) const {
    HttpRequest request;
    request.method = method;
    request.url = url;
    request.idle_timeout = kNoLimit;
    request.headers = {{"Accept", method == "POST" ? "application/json, text/event-stream" : "text/event-stream"}};
    if (method == "POST") request.headers.emplace_back("Content-Type", "application/json");
    const MutexLock lock(mutex_);
    if (!version_.empty()) request.headers.emplace_back("MCP-Protocol-Version", version_);
    if (!session_id_.empty() && !is_stateless) request.headers.emplace_back("Mcp-Session-Id", session_id_);
    request.headers.insert(request.headers.end(), address_.headers.begin(), address_.headers.end());
    return request;
  }

  // --- on the queue's thread from here on, but for what says otherwise ---

  void Post(OutgoingMessage message, int fruitless, int renewals = 0) {
    // Such a server hears of a call that nobody waits for any more by the end of its connection, and of nothing else.
    if (message.is_stateless && !message.request_id) return;
    if (legacy_ && post_url_.empty()) {
      held_back_ = std::move(message);  // until the endpoint is known; only `initialize` can be that early
      return;
    }
    if (exchanges_.size() >= kMaxExchanges && !message.request_id) {
      return CloseFor(Broken("mcp_protocol", "the server asks more than it reads answers"));
    }
    auto exchange = std::make_shared<Exchange>(*this, message.is_subscription ? Purpose::kSubscribe : Purpose::kPost);
    exchange->request_id = message.request_id;
    exchange->is_initialize = message.is_initialize;
    exchange->is_stateless = message.is_stateless;
    exchange->fruitless = fruitless;
    if (message.is_initialize && !legacy_) exchange->initialize = message;
    if (message.is_subscription || address_.authorizer) exchange->message = message;
    exchange->renewals = renewals;
    HttpRequest request = MakeRequest("POST", post_url_, message.is_stateless);
    for (auto& header : message.headers) request.headers.push_back(std::move(header));
    request.body = std::move(message.json);
    if (address_.authorizer) exchange->token = address_.authorizer->Token();
    Perform(std::move(request), std::move(exchange));
  }

  void OpenStream(Purpose purpose, const std::string& from, std::optional<std::int64_t> request_id, int fruitless) {
    auto exchange = std::make_shared<Exchange>(*this, purpose);
    exchange->request_id = request_id;
    exchange->fruitless = fruitless;
    exchange->resumed_from = from;
    HttpRequest request = MakeRequest("GET", address_.url);
    if (!from.empty()) request.headers.emplace_back("Last-Event-ID", from);
    Perform(std::move(request), std::move(exchange));
  }

  void Perform(HttpRequest request, std::shared_ptr<Exchange> exchange) {
    if (over_) return;
    if (address_.authorizer) {
      const bool is_post = exchange->purpose == Purpose::kPost || exchange->purpose == Purpose::kSubscribe;
      const std::string token = is_post ? exchange->token : address_.authorizer->Token();
      if (!token.empty()) request.headers.emplace_back("Authorization", "Bearer " + token);
    }
    exchanges_.insert(exchange);
    {
      const MutexLock lock(mutex_);
      ++under_way_;
    }
    transport_.Send(std::move(request), *exchange, exchange->stop.get_token(), [this, exchange](Result<void> result) {
      queue_.Post([this, exchange, result = std::move(result)] { Ended(exchange, result); });
      // Nothing of this object may be touched once the count is told.
      const MutexLock lock(mutex_);
      if (--under_way_ == 0) all_ended_.notify_all();
    });
  }

  void SayGoodbye() {
    auto exchange = std::make_shared<Exchange>(*this, Purpose::kPost);
    HttpRequest request = MakeRequest("DELETE", address_.url);
    request.connect_timeout = request.idle_timeout = kGoodbye;
    request.total_timeout = kGoodbye;
    {
      const MutexLock lock(mutex_);
      ++under_way_;
    }
    // Whether the server takes it does not matter: sessions that nobody uses end by themselves.
    transport_.Send(std::move(request), *exchange, {}, [this, exchange](const Result<void>&) {
      const MutexLock lock(mutex_);
      if (--under_way_ == 0) all_ended_.notify_all();
    });
  }

  void Delivered(const std::string& message) {
    bool flooded;
    {
      const MutexLock lock(mutex_);
      flooded = waiting_bytes_ > kMaxWaitingBytes;
      waiting_bytes_ -= std::min(waiting_bytes_, message.size());
    }
    if (flooded) return CloseFor(Broken("mcp_protocol", "the server sends faster than it can be read"));
    if (!over_) listener_->OnMessage(message);
  }

  void Ended(const std::shared_ptr<Exchange>& exchange, const Result<void>& result) {
    exchanges_.erase(exchange);
    if (over_) return;
    if (exchange->too_long || exchange->parser.overflowed()) {
      return CloseFor(Broken("mcp_protocol", "the server sent a message of more than 4 MiB"));
    }
    if (!exchange->body.empty() && exchange->status < 300) listener_->OnMessage(exchange->body);
    switch (exchange->purpose) {
      case Purpose::kSubscribe:
        if (Renews(exchange)) return;
        return SubscriptionEnded(*exchange, result);
      case Purpose::kPost:
        if (Renews(exchange)) return;
        return PostEnded(*exchange, result);
      case Purpose::kResume:
      case Purpose::kProbe:
        return PostEnded(*exchange, result);
      case Purpose::kListen:
        return ListenEnded(*exchange, result);
      case Purpose::kLegacy:
        if (result && !exchange->is_stream) return CloseFor(refusal_);
        return CloseFor(result ? Broken("connection_lost", "the server ended the connection") : result.error());
    }
  }

  void PostEnded(const Exchange& exchange, const Result<void>& result) {
    if (!result && result.error().code == ErrorCode::kCancelled) return;  // abandoned
    if (!result && exchange.status == 0) return CloseFor(result.error());
    const int status = exchange.status;
    if (status == 404 && HasSession()) {
      forgotten_ = true;
      return CloseFor(Broken("mcp_session_ended", "the server has ended the session"));
    }
    const bool may_be_older = exchange.is_initialize && (status == 400 || status == 404 || status == 405);
    if (may_be_older && !legacy_) return TryLegacy(exchange);
    if (exchange.purpose == Purpose::kProbe) return ProbeEnded(status);
    if (status == 400 && HasSession()) return AskWhetherSessionLives(exchange);
    if (!exchange.request_id || !listener_->IsWaiting(*exchange.request_id)) return;
    if (status >= 300) {
      if (const std::string error = ErrorMessage(exchange); !error.empty()) return listener_->OnMessage(error);
      return listener_->OnRequestFailed(*exchange.request_id, StatusError(status));
    }
    if (legacy_ && exchange.purpose == Purpose::kPost) return;  // the answer comes by the stream
    const std::string from = exchange.last_event_id();
    const int fruitless = exchange.events > 0 ? 0 : exchange.fruitless + 1;
    if (!exchange.is_stream || from.empty() || exchange.is_stateless || fruitless > kMaxResumes) {
      return listener_->OnRequestFailed(*exchange.request_id,
                                        result ? Broken("mcp_protocol", "the server sent no answer") : result.error());
    }
    // The server has let go of the stream, or the network has: the rest waits where it broke.
    queue_.After(RetryDelay(exchange, 0), [this, from, id = exchange.request_id, fruitless] {
      if (listener_->IsWaiting(*id)) OpenStream(Purpose::kResume, from, id, fruitless);
    });
  }

  // True: the server wants another token, and the message waits for it. It has not been looked at by the server.
  bool Renews(const std::shared_ptr<Exchange>& exchange) {
    const bool wants_more =
        exchange->status == 403 && exchange->challenge && exchange->challenge->error == "insufficient_scope";
    if (!address_.authorizer || (exchange->status != 401 && !wants_more)) return false;
    if (exchange->renewals == kMaxRenewals) return false;
    const auto done = [this, weak = std::weak_ptr<Alive>(alive_), exchange](Result<void> renewed) {
      const std::shared_ptr<Alive> alive = weak.lock();
      if (!alive) return;
      const MutexLock lock(alive->mutex);
      if (!alive->is_open) return;
      queue_.Post([this, exchange, renewed = std::move(renewed)] { Renewed(*exchange, renewed); });
    };
    address_.authorizer->Renew(exchange->challenge.value_or(OAuthChallenge{}), exchange->token, exchange->renewals > 0,
                               done);
    return true;
  }

  void Renewed(const Exchange& exchange, const Result<void>& renewed) {
    if (over_) return;
    const bool is_wanted =
        !exchange.request_id || exchange.purpose == Purpose::kSubscribe || listener_->IsWaiting(*exchange.request_id);
    if (!is_wanted) return;
    if (renewed) return Post(exchange.message, exchange.fruitless, exchange.renewals + 1);
    if (exchange.request_id) {
      Error why = renewed.error();
      why.reason = "mcp_unauthorized";
      listener_->OnRequestFailed(*exchange.request_id, std::move(why));
    }
  }

  // What a server without sessions says in the body of an error: a JSON-RPC error, which need not name the request.
  // Empty: it is none.
  static std::string ErrorMessage(const Exchange& exchange) {
    const bool wants_login = exchange.status == 401 || exchange.status == 403;
    if (exchange.body.empty() || !exchange.is_stateless || wants_login) return "";
    const auto parsed = ParseJson(exchange.body);
    if (!parsed || !MemberOf(*parsed, "error").is_object() || !MemberOf(MemberOf(*parsed, "error"), "code").is_number())
      return "";
    return DumpJson({{"jsonrpc", "2.0"}, {"id", *exchange.request_id}, {"error", MemberOf(*parsed, "error")}});
  }

  // A server need not offer it; one that did is asked again, less and less often while there is nothing.
  void SubscriptionEnded(const Exchange& exchange, const Result<void>& result) {
    if (!result && result.error().code == ErrorCode::kCancelled) return;
    if (exchange.status >= 300 || (result && !exchange.is_stream)) return;
    const int fruitless = exchange.events > 0 ? 0 : exchange.fruitless + 1;
    if (fruitless > kMaxResumes) return;
    queue_.After(RetryDelay(exchange, fruitless),
                 [this, message = exchange.message, fruitless] { Post(message, fruitless); });
  }

  // A server that has forgotten the session says 404, but many say 400, as they do to a request that is wrong by
  // itself. A ping tells which it was; until then the request that was refused waits.
  void AskWhetherSessionLives(const Exchange& refused) {
    if (refused.request_id) refused_.push_back(*refused.request_id);
    if (std::exchange(probing_, true)) return;
    HttpRequest request = MakeRequest("POST", post_url_);
    request.body = R"({"jsonrpc":"2.0","id":"is the session there","method":"ping"})";
    request.total_timeout = kProbeLimit;
    Perform(std::move(request), std::make_shared<Exchange>(*this, Purpose::kProbe));
  }

  void ProbeEnded(int status) {
    probing_ = false;
    if (status == 400) {
      forgotten_ = true;
      return CloseFor(Broken("mcp_session_ended", "the server has ended the session"));
    }
    for (const std::int64_t id : std::exchange(refused_, {})) {
      if (listener_->IsWaiting(id)) listener_->OnRequestFailed(id, StatusError(400));
    }
  }

  // A server need not offer this stream; one that did is asked again for as long as it answers.
  void ListenEnded(const Exchange& exchange, const Result<void>& result) {
    if (exchange.status == 404 && HasSession()) {
      forgotten_ = true;
      return CloseFor(Broken("mcp_session_ended", "the server has ended the session"));
    }
    if (exchange.status == 400 && HasSession()) return AskWhetherSessionLives(exchange);
    if (exchange.status >= 300 || (result && !exchange.is_stream)) return;
    const int fruitless = exchange.is_stream ? 0 : exchange.fruitless + 1;
    if (fruitless > kMaxResumes) return;
    queue_.After(RetryDelay(exchange, fruitless), [this, from = exchange.last_event_id(), fruitless] {
      OpenStream(Purpose::kListen, from, std::nullopt, fruitless);
    });
  }

  static milliseconds RetryDelay(const Exchange& exchange, int fruitless) {
    const milliseconds otherwise = kFirstRetry * (1 << fruitless);
    return std::clamp(exchange.parser.retry().value_or(otherwise), kShortestRetry, kLongestRetry);
  }

  void TryLegacy(const Exchange& exchange) {
    legacy_ = true;
    refusal_ = StatusError(exchange.status);
    post_url_.clear();
    held_back_ = exchange.initialize;
    OpenStream(Purpose::kLegacy, "", std::nullopt, 0);
  }

  void OpenLegacy(const std::string& reference) {
    if (!legacy_ || !post_url_.empty()) return;
    post_url_ = ResolveEndpoint(address_.url, reference);
    if (post_url_.empty()) return CloseFor(Broken("mcp_protocol", "the server's endpoint is on another server"));
    Post(std::move(held_back_), 0);
  }

  static Error StatusError(int status) {
    if (status == 401 || status == 403) {
      return Broken("mcp_unauthorized", "the server wants authorization (HTTP status " + std::to_string(status) +
                                            "); log in with \"reprise mcp login\", or set a token under headers");
    }
    return Broken("mcp_http_status", "the server answered with HTTP status " + std::to_string(status));
  }

  bool HasSession() const {
    const MutexLock lock(mutex_);
    return !session_id_.empty();
  }

  void CloseFor(const Error& why) {
    if (std::exchange(over_, true)) return;
    for (const auto& exchange : exchanges_) exchange->stop.request_stop();
    listener_->OnClosed(why);
  }

  // Whether somebody who renews a token may still post to the queue.
  struct Alive {
    Mutex mutex;
    bool is_open GUARDED_BY(mutex) = true;
  };

  // --- constant after Start
  const std::shared_ptr<Alive> alive_ = std::make_shared<Alive>();
  Transport& transport_;
  const HttpServerAddress address_;
  ChannelListener* listener_ = nullptr;

  mutable Mutex mutex_;
  std::condition_variable_any all_ended_;
  std::string version_ GUARDED_BY(mutex_), session_id_ GUARDED_BY(mutex_);
  std::size_t under_way_ GUARDED_BY(mutex_) = 0;
  std::size_t waiting_bytes_ GUARDED_BY(mutex_) = 0;
  bool closed_ = false;  // Close's caller's

  // --- the queue's thread's
  std::set<std::shared_ptr<Exchange>> exchanges_;
  std::string post_url_;  // empty: not known yet
  bool legacy_ = false;
  Error refusal_;  // of the first POST
  OutgoingMessage held_back_;
  bool over_ = false, forgotten_ = false;
  bool probing_ = false;
  std::vector<std::int64_t> refused_;  // requests whose end waits for the probe's

  TimedQueue queue_;  // last: ends before what it uses is gone
};

void Exchange::OnHead(int its_status, const HttpHeaders& headers) {
  status = its_status;
  for (const auto& [name, value] : headers) {
    if (name == "content-type") {
      is_stream = status < 300 && IsEventStream(value);
      is_json_ = (status < 300 || is_stateless) && IsJson(value);
    } else if (name == "www-authenticate" && !challenge) {
      challenge = ParseChallenge(value);
    } else if (name == "mcp-session-id" && is_initialize && status < 300) {
      channel_.TakeSession(value);
    }
  }
}

bool Exchange::OnData(std::string_view bytes) {
  if (is_json_) {
    const bool is_error = status >= 300;
    const bool fits = body.size() + bytes.size() <= (is_error ? kMaxErrorBytes : kMaxMcpMessageBytes);
    too_long = !fits && !is_error;
    if (fits) body += bytes;
    return fits;
  }
  if (!is_stream) return status < 300;  // the body of an error is of no interest
  parser.Feed(bytes);
  while (const auto event = parser.Next()) {
    ++events;
    if (purpose == Purpose::kLegacy && event->type == "endpoint") {
      channel_.TakeEndpoint(std::string(event->data));
    } else if (!event->data.empty() && (event->type.empty() || event->type == "message")) {
      channel_.Deliver(std::string(event->data));
    }
  }
  return !parser.overflowed();
}

}  // namespace

std::unique_ptr<Channel> OpenHttpChannel(Transport& transport, HttpServerAddress address) {
  return std::make_unique<HttpChannel>(transport, std::move(address));
}

}  // namespace reprise
