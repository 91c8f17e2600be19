#include "mcp/http_channel.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stop_token>

#include "base/json.h"
#include "base/logging.h"
#include "base/mutex.h"
#include "base/public_address.h"
#include "base/queues.h"
#include "base/sse_parser.h"
#include "base/text.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNoLimit = std::chrono::hours(24);  // calls have their own deadlines; streams may be silent
constexpr milliseconds kGoodbye{500};
constexpr milliseconds kProbeLimit{10'000};
constexpr milliseconds kFirstRetry{1000}, kShortestRetry{50}, kLongestRetry{30'000};
constexpr int kMaxResumes = 5;  // in a row, without an event in between
constexpr std::size_t kMaxExchanges = 64;
constexpr std::size_t kMaxWaitingBytes = 4 * kMaxMcpMessageBytes;
constexpr std::size_t kMaxErrorBytes = 64 * 1024;
constexpr int kMaxRenewals = 2;  // of tokens, for one request
constexpr int kMaxRedirects = 5;
constexpr std::size_t kMaxAddress = 300, kMaxType = 100;  // bytes quoted in errors

// Whatever the reason, the channel is of no more use.
Error Broken(Reason reason, std::string message) {
  return {.code = ErrorCode::kUnavailable, .reason = std::string(NameOf(reason)), .message = std::move(message)};
}

// "https://host:1/a/b?c" -> "https://host:1".
std::string ServerPart(const std::string& url) {
  const std::size_t host = url.find("://");
  return host == std::string::npos ? "" : url.substr(0, url.find_first_of("/?#", host + 3));
}

bool IsSameOrigin(const std::string& a, const std::string& b) {
  const auto normal = [](const std::string& url) {
    std::string origin = LowerCase(ServerPart(url));
    const std::string_view own_port = origin.starts_with("https:") ? ":443" : ":80";
    if (origin.ends_with(own_port)) origin.resize(origin.size() - own_port.size());
    return origin;
  };
  return normal(a) == normal(b);
}

// The URL that an `endpoint` event or a redirect leads to; empty if it is on another server.
std::string ResolveEndpoint(const std::string& base, std::string_view reference) {
  const std::string origin = ServerPart(base);
  if (reference.starts_with("//")) {
    const std::string whole = base.substr(0, base.find(':') + 1) + std::string(reference);
    return IsSameOrigin(whole, base) ? whole : "";
  }
  if (reference.starts_with('/')) return origin + std::string(reference);
  const std::size_t scheme = reference.find("://");
  if (scheme != std::string_view::npos && scheme < reference.find_first_of("/?#")) {
    return IsSameOrigin(std::string(reference), base) ? std::string(reference) : "";
  }
  const std::string path = base.substr(0, base.find_first_of("?#"));
  const std::size_t slash = path.rfind('/');
  return (slash < origin.size() ? origin + "/" : path.substr(0, slash + 1)) + std::string(reference);
}

bool IsEventStream(std::string_view content_type) { return LowerCase(content_type).starts_with("text/event-stream"); }
bool IsJson(std::string_view content_type) { return LowerCase(content_type).starts_with("application/json"); }

// Statuses that demand the same request at another address. A 303 leads to a page that answers no message.
bool IsRedirect(int status) { return status == 301 || status == 302 || status == 307 || status == 308; }
// Statuses of a server that is overloaded or being restarted.
bool IsPassing(int status) { return status == 408 || status == 429 || status >= 500; }
bool IsForGood(int status) { return status == 301 || status == 308; }

// Whether the server is unreachable. Any other failure concerns only its request.
bool IsUnreachable(const Error& error) {
  return error.Is(Reason::kConnectionFailed) || error.Is(Reason::kNameNotResolved) || error.Is(Reason::kTlsFailed) ||
         error.Is(Reason::kConnectTimeout);
}

// The purpose of an exchange of request and response.
enum class Purpose {
  kPost,       // carries a message
  kSubscribe,  // carries a message whose response is a lasting stream
  kResume,     // resumes the stream that answered a POST
  kListen,     // receives the server's own messages
  kLegacy,     // the single stream of HTTP+SSE
  kProbe,      // a ping that tests whether the session still exists
};

class HttpChannel;

// One request under way. OnHead and OnData run on the transport's thread; the rest belongs to the queue's thread.
class Exchange final : public HttpResponseHandler {
 public:
  Exchange(HttpChannel& channel, Purpose its_purpose) : purpose(its_purpose), channel_(channel) {}

  void OnHead(int status, const HttpHeaders& headers) override;
  bool OnData(std::string_view bytes) override;

  const Purpose purpose;
  std::optional<std::int64_t> request_id;
  bool is_initialize = false;
  bool is_stateless = false;
  OutgoingMessage message;  // kept in case it must be sent again: new token, redirect, broken subscription
  std::string url;          // the URL it was sent to
  int redirects = 0;        // the number of redirects that led there
  std::string token;        // the token it was sent with
  int renewals = 0;         // the number of new tokens for this message
  std::stop_source stop;
  int fruitless = 0;  // preceding streams of this kind without an event
  std::string resumed_from;
  std::optional<milliseconds> retry;  // what the stream before demanded
  std::optional<Error> lost;          // why the stream ended that this one resumes

  // --- after the end
  int status = 0;
  std::optional<OAuthChallenge> challenge;
  std::string content_type, location;
  std::string body;  // an error's body only if it is JSON
  bool is_stream = false, too_long = false, has_no_room = false;
  std::size_t events = 0;
  SseParser parser{kMaxMcpMessageBytes};

  std::string last_event_id() const { return parser.last_event_id().empty() ? resumed_from : parser.last_event_id(); }

 private:
  HttpChannel& channel_;
  bool is_kept_ = false;  // whether the body is kept
};

class HttpChannel final : public Channel {
 public:
  HttpChannel(Transport& transport, HttpServerAddress address)
      : transport_(transport), address_(std::move(address)), post_url_(address_.url) {}
  ~HttpChannel() override { Close(); }

  void Start(ChannelListener& listener) override { listener_ = &listener; }

  void Send(OutgoingMessage message) override {
    queue_.Post([this, message = std::move(message)]() mutable { Post(std::move(message)); });
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
    queue_.Stop();  // from here on only this thread uses exchanges_
    for (const auto& exchange : exchanges_) exchange->stop.request_stop();
    std::string session;
    {
      const MutexLock lock(mutex_);
      session = session_id_;
    }
    if (!session.empty() && !ending_) SayGoodbye();
    MutexLock lock(mutex_);
    all_ended_.wait(lock, [this]() REQUIRES(mutex_) { return under_way_ == 0; });
  }

  // --- for exchanges, on the transport's thread ---
  // False if too many bytes already wait to be read.
  bool Deliver(std::string message) {
    {
      const MutexLock lock(mutex_);
      if (waiting_bytes_ + message.size() > kMaxWaitingBytes) return false;
      waiting_bytes_ += message.size();
    }
    queue_.Post([this, message = std::move(message)] { Delivered(message); });
    return true;
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

  // --- on the queue's thread from here on, unless a comment says otherwise ---

  // `url` is the target of redirects; empty: the usual URL.
  void Post(OutgoingMessage message, int fruitless = 0, int renewals = 0, const std::string& url = "",
            int redirects = 0) {
    // A stateless server gets no notifications; it learns that a call was abandoned when the connection ends.
    if (message.is_stateless && !message.request_id) return;
    if (legacy_ && post_url_.empty()) {
      held_back_ = std::move(message);  // until the endpoint is known; only `initialize` can come this early
      return;
    }
    if (exchanges_.size() >= kMaxExchanges && !message.request_id) {
      return LogWarning("an MCP server does not read what it is sent; a message to it is dropped");
    }
    auto exchange = std::make_shared<Exchange>(*this, message.is_subscription ? Purpose::kSubscribe : Purpose::kPost);
    exchange->request_id = message.request_id;
    exchange->is_initialize = message.is_initialize;
    exchange->is_stateless = message.is_stateless;
    exchange->fruitless = fruitless;
    exchange->message = message;
    exchange->renewals = renewals;
    exchange->redirects = redirects;
    exchange->url = url.empty() ? post_url_ : url;
    HttpRequest request = MakeRequest("POST", exchange->url, message.is_stateless);
    for (auto& header : message.headers) request.headers.push_back(std::move(header));
    request.body = std::move(message.json);
    if (address_.authorizer) exchange->token = address_.authorizer->Token();
    Perform(std::move(request), std::move(exchange));
  }

  void OpenStream(Purpose purpose, const std::string& from, std::optional<std::int64_t> request_id, int fruitless,
                  std::optional<milliseconds> retry = {}, const std::string& url = "", int redirects = 0,
                  std::optional<Error> lost = {}) {
    auto exchange = std::make_shared<Exchange>(*this, purpose);
    exchange->retry = retry;
    exchange->lost = std::move(lost);
    exchange->request_id = request_id;
    exchange->fruitless = fruitless;
    exchange->resumed_from = from;
    exchange->redirects = redirects;
    exchange->url = url.empty() ? url_ : url;
    HttpRequest request = MakeRequest("GET", exchange->url);
    if (!from.empty()) request.headers.emplace_back("Last-Event-ID", from);
    Perform(std::move(request), std::move(exchange));
  }

  void Perform(HttpRequest request, std::shared_ptr<Exchange> exchange) {
    if (over_) return;
    if (ending_) {
      if (exchange->request_id) listener_->OnRequestFailed(*exchange->request_id, *ending_);
      return;
    }
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
      queue_.Post([this, exchange, result = std::move(result)] {
        Ended(exchange, result);
        if (ending_ && std::ranges::none_of(exchanges_, AwaitsAnswer)) CloseFor(*ending_);
      });
      // After the last count the channel may be destroyed, so nothing of it may be used any more.
      const MutexLock lock(mutex_);
      if (--under_way_ == 0) all_ended_.notify_all();
    });
  }

  void SayGoodbye() {
    auto exchange = std::make_shared<Exchange>(*this, Purpose::kPost);
    HttpRequest request = MakeRequest("DELETE", url_);
    request.connect_timeout = request.idle_timeout = kGoodbye;
    request.total_timeout = kGoodbye;
    {
      const MutexLock lock(mutex_);
      ++under_way_;
    }
    // The server's response does not matter, because unused sessions expire.
    transport_.Send(std::move(request), *exchange, {}, [this, exchange](const Result<void>&) {
      const MutexLock lock(mutex_);
      if (--under_way_ == 0) all_ended_.notify_all();
    });
  }

  void Delivered(const std::string& message) {
    {
      const MutexLock lock(mutex_);
      waiting_bytes_ -= message.size();
    }
    if (!over_) listener_->OnMessage(message, std::nullopt);
  }

  void Ended(const std::shared_ptr<Exchange>& exchange, const Result<void>& result) {
    exchanges_.erase(exchange);
    if (over_) return;
    if (exchange->too_long || exchange->has_no_room || exchange->parser.overflowed()) return TooLong(*exchange);
    if (IsRedirect(exchange->status) && !exchange->location.empty()) return Redirected(*exchange);
    // Some servers omit the blank line after the last event. In a stream that can be resumed, the event may be torn.
    const bool may_go_on = !exchange->last_event_id().empty();
    if (const auto last = exchange->parser.Finish(); result && last && (!may_go_on || ParseJson(last->data))) {
      listener_->OnMessage(last->data, std::nullopt);
    }
    if (!exchange->body.empty() && exchange->status < 300) listener_->OnMessage(exchange->body, exchange->request_id);
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
        return CloseFor(result ? Broken(Reason::kConnectionLost, "the server ended the connection") : result.error());
    }
  }

  // A message that is too long fails its request only; the session continues.
  void TooLong(const Exchange& exchange) {
    const Error why = exchange.has_no_room ? Broken(Reason::kMcpProtocol, "the server sends faster than it can be read")
                                           : McpTooLargeError();
    if (exchange.purpose == Purpose::kLegacy) return CloseFor(why);  // all messages come through this stream
    LogWarning("a message from an MCP server is dropped", {{"error", why.message}});
    if (exchange.request_id) return listener_->OnRequestFailed(*exchange.request_id, why);
    if (exchange.purpose == Purpose::kListen) ListenEnded(exchange, {});
  }

  // Sends the same request to another address of the same server. Another server gets nothing of it.
  void Redirected(const Exchange& exchange) {
    const std::string target = ResolveEndpoint(exchange.url, exchange.location);
    if (target.empty() || exchange.redirects == kMaxRedirects) {
      const std::string address(Utf8Prefix(WithoutUser(ToValidUtf8(exchange.location)), kMaxAddress));
      Error why = Broken(Reason::kMcpRedirected,
                         target.empty() ? "the server sends its clients to " + address +
                                              ", which is another server; if that is right, configure that address"
                                        : "the server's redirects do not end; the last leads to " + address);
      if (exchange.purpose == Purpose::kLegacy) return CloseFor(why);
      if (exchange.request_id) return listener_->OnRequestFailed(*exchange.request_id, std::move(why));
      return LogWarning("an MCP server's redirect is not followed", {{"error", why.message}});
    }
    const bool is_post = exchange.purpose == Purpose::kPost || exchange.purpose == Purpose::kSubscribe;
    if (IsForGood(exchange.status) && exchange.url == (is_post ? post_url_ : url_)) {
      if (post_url_ == url_) post_url_ = target;  // the two differ only for HTTP+SSE
      (is_post && legacy_ ? post_url_ : url_) = target;
    }
    if (is_post) return Post(exchange.message, exchange.fruitless, exchange.renewals, target, exchange.redirects + 1);
    if (exchange.purpose == Purpose::kProbe) return ProbeEnded(exchange);
    OpenStream(exchange.purpose, exchange.resumed_from, exchange.request_id, exchange.fruitless, exchange.retry, target,
               exchange.redirects + 1, exchange.lost);
  }

  void PostEnded(const Exchange& exchange, const Result<void>& result) {
    if (!result && result.error().code == ErrorCode::kCancelled) return;  // abandoned
    if (ResumesAgain(exchange, result)) return;
    if (!result && exchange.status == 0 && IsUnreachable(result.error())) return EndFor(result.error(), exchange);
    if (!result && exchange.status == 0) {
      if (exchange.purpose == Purpose::kProbe) return ProbeEnded(exchange);
      if (exchange.request_id) listener_->OnRequestFailed(*exchange.request_id, FirstCause(exchange, result.error()));
      return;
    }
    const int status = exchange.status;
    const std::string answer = AnswerIn(exchange);
    if (!answer.empty() && NamesRequest(exchange) && !exchange.is_initialize) {
      listener_->OnMessage(answer, exchange.request_id);
      if (HasSession() && (status == 400 || status == 404)) AskWhetherSessionLives(exchange);
      return;
    }
    if (status == 404 && HasSession()) return EndFor(SessionEnded(), exchange);
    const bool may_be_older = exchange.is_initialize && (status == 400 || status == 404 || status == 405);
    if (may_be_older && !legacy_) return TryLegacy(exchange);
    if (exchange.purpose == Purpose::kProbe) return ProbeEnded(exchange);
    if (status == 400 && HasSession()) return AskWhetherSessionLives(exchange);
    if (!exchange.request_id || !listener_->IsWaiting(*exchange.request_id)) return;
    if (status >= 300 && exchange.lost && answer.empty()) {
      return listener_->OnRequestFailed(*exchange.request_id, *exchange.lost);
    }
    if (status >= 300) return FailFor(*exchange.request_id, status, answer);
    if (legacy_ && exchange.purpose == Purpose::kPost) return;  // the answer comes through the stream
    const std::string from = exchange.last_event_id();
    const int fruitless = exchange.events > 0 ? 0 : exchange.fruitless + 1;
    if (!exchange.is_stream || from.empty() || exchange.is_stateless || fruitless > kMaxResumes) {
      return listener_->OnRequestFailed(*exchange.request_id, FirstCause(exchange, WhyEnded(exchange, result)));
    }
    // The server closed the stream or the network broke it, so the stream is resumed where it ended.
    Resume(exchange, from, fruitless, RetryDelay(exchange, 0), WhyEnded(exchange, result));
  }

  static Error WhyEnded(const Exchange& exchange, const Result<void>& result) {
    if (!result) return result.error();
    const std::string what = exchange.body.empty() ? "" : " (but " + TypeOf(exchange) + ")";
    return Broken(Reason::kMcpProtocol, "the server sent no answer" + what);
  }
  // A stream that cannot be resumed was lost before, which says more.
  static Error FirstCause(const Exchange& exchange, const Error& now) { return exchange.lost.value_or(now); }

  void Resume(const Exchange& exchange, const std::string& from, int fruitless, milliseconds delay, const Error& why) {
    const auto retry = exchange.parser.retry() ? exchange.parser.retry() : exchange.retry;
    queue_.After(delay, [this, from, id = exchange.request_id, fruitless, retry, lost = exchange.lost.value_or(why)] {
      if (listener_->IsWaiting(*id)) OpenStream(Purpose::kResume, from, id, fruitless, retry, "", 0, lost);
    });
  }

  // The server may still have the stream, whose call has taken effect.
  bool ResumesAgain(const Exchange& exchange, const Result<void>& result) {
    const int status = exchange.status;
    const bool is_passing = status == 0 ? !result : IsPassing(status);
    if (exchange.purpose != Purpose::kResume || !is_passing || exchange.fruitless == kMaxResumes) return false;
    if (!result && result.error().code == ErrorCode::kCancelled) return false;
    Resume(exchange, exchange.resumed_from, exchange.fruitless + 1, RetryDelay(exchange, exchange.fruitless + 1),
           WhyEnded(exchange, result));
    return true;
  }

  // `answer`: of the server, in spite of the status; may be empty.
  void FailFor(std::int64_t id, int status, const std::string& answer) {
    if (!answer.empty()) return listener_->OnMessage(answer, id);
    listener_->OnRequestFailed(id, StatusError(status));
  }

  // True if the server wants another token; then the message waits for it. The server has not processed the message.
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
      why.reason = NameOf(Reason::kMcpUnauthorized);
      listener_->OnRequestFailed(*exchange.request_id, std::move(why));
    }
  }

  // Whether the body is a response to this very request.
  static bool NamesRequest(const Exchange& exchange) {
    const auto parsed = ParseJson(exchange.body);
    return parsed && MemberOf(*parsed, "id") == *exchange.request_id;
  }

  // The answer in the body of a failed response: a call may have been done in spite of the status. A JSON-RPC error is
  // completed by the request's id, which the server may not know. Empty if there is none.
  static std::string AnswerIn(const Exchange& exchange) {
    const bool wants_login = exchange.status == 401 || exchange.status == 403;
    if (exchange.status < 300 || exchange.body.empty() || !exchange.request_id || wants_login) return "";
    const auto parsed = ParseJson(exchange.body);
    if (!parsed) return "";
    const Json& error = MemberOf(*parsed, "error");
    if (MemberOf(*parsed, "id") == *exchange.request_id && (parsed->contains("result") || error.is_object()))
      return exchange.body;
    if (!error.is_object() || !MemberOf(error, "code").is_number()) return "";
    return DumpJson({{"jsonrpc", "2.0"}, {"id", *exchange.request_id}, {"error", MemberOf(*parsed, "error")}});
  }

  // Servers need not offer subscriptions. If this one did, it is asked again, with growing pauses while nothing comes.
  void SubscriptionEnded(const Exchange& exchange, const Result<void>& result) {
    if (!result && result.error().code == ErrorCode::kCancelled) return;
    if (!IsPassing(exchange.status) && (exchange.status >= 300 || (result && !exchange.is_stream))) return;
    const int fruitless = exchange.events > 0 ? 0 : exchange.fruitless + 1;
    if (fruitless > kMaxResumes) return;
    queue_.After(RetryDelay(exchange, fruitless),
                 [this, message = exchange.message, fruitless] { Post(message, fruitless); });
  }

  // A server that has forgotten the session should answer 404, but many answer 400, as for an invalid request. A ping
  // tells the two apart; until its end the rejected request waits.
  void AskWhetherSessionLives(const Exchange& refused) {
    if (refused.request_id) refused_.emplace(*refused.request_id, AnswerIn(refused));
    if (std::exchange(probing_, true)) return;
    HttpRequest request = MakeRequest("POST", post_url_);
    request.body = R"({"jsonrpc":"2.0","id":"is the session there","method":"ping"})";
    request.total_timeout = kProbeLimit;
    Perform(std::move(request), std::make_shared<Exchange>(*this, Purpose::kProbe));
  }

  void ProbeEnded(const Exchange& probe) {
    probing_ = false;
    if (probe.status == 400) return EndFor(SessionEnded(), probe);
    for (const auto& [id, answer] : std::exchange(refused_, {})) FailFor(id, 400, answer);
  }

  // Servers need not offer this stream. If this one did, it is asked again as long as it answers.
  void ListenEnded(const Exchange& exchange, const Result<void>& result) {
    if (exchange.status == 404 && HasSession()) return EndFor(SessionEnded(), exchange);
    if (exchange.status == 400 && HasSession()) return AskWhetherSessionLives(exchange);
    if (!IsPassing(exchange.status) && (exchange.status >= 300 || (result && !exchange.is_stream))) return;
    const int fruitless = exchange.is_stream ? 0 : exchange.fruitless + 1;
    if (fruitless > kMaxResumes) return;
    queue_.After(RetryDelay(exchange, fruitless), [this, from = exchange.last_event_id(), fruitless] {
      OpenStream(Purpose::kListen, from, std::nullopt, fruitless);
    });
  }

  static milliseconds RetryDelay(const Exchange& exchange, int fruitless) {
    const milliseconds first = exchange.parser.retry().value_or(exchange.retry.value_or(kFirstRetry));
    return std::clamp(std::min(first, kLongestRetry) * (1 << fruitless), kShortestRetry, kLongestRetry);
  }

  void TryLegacy(const Exchange& exchange) {
    legacy_ = true;
    refusal_ = StatusError(exchange.status);
    post_url_.clear();
    held_back_ = exchange.message;
    OpenStream(Purpose::kLegacy, "", std::nullopt, 0);
  }

  void OpenLegacy(const std::string& reference) {
    if (!legacy_ || !post_url_.empty()) return;
    post_url_ = ResolveEndpoint(address_.url, reference);
    if (post_url_.empty()) {
      return CloseFor(Broken(Reason::kMcpProtocol, "the server's endpoint is on another server: " +
                                                       std::string(Utf8Prefix(ToValidUtf8(reference), kMaxAddress))));
    }
    Post(std::move(held_back_));
  }

  static std::string TypeOf(const Exchange& exchange) {
    return exchange.content_type.empty() ? "something without a media type"
                                         : std::string(Utf8Prefix(ToValidUtf8(exchange.content_type), kMaxType));
  }

  static Error StatusError(int status) {
    if (status == 401 || status == 403) {
      return Broken(Reason::kMcpUnauthorized, "the server wants authorization (HTTP status " + std::to_string(status) +
                                                  "); log in with \"reprise mcp login\", or set a token under headers");
    }
    return Broken(Reason::kMcpHttpStatus, "the server answered with HTTP status " + std::to_string(status));
  }

  bool HasSession() const {
    const MutexLock lock(mutex_);
    return !session_id_.empty();
  }

  static Error SessionEnded() { return Broken(Reason::kMcpSessionEnded, "the server has ended the session"); }

  static bool AwaitsAnswer(const std::shared_ptr<Exchange>& exchange) {
    return exchange->request_id && exchange->purpose != Purpose::kSubscribe;
  }

  // Fails the request of this exchange and sends nothing more. The server may still answer requests that it got before,
  // whose calls have taken effect, so the channel closes when none of them is under way.
  void EndFor(const Error& why, const Exchange& exchange) {
    if (!ending_) {
      ending_ = why;
      listener_->OnEnding(why);
    }
    for (const auto& [id, answer] : std::exchange(refused_, {})) listener_->OnRequestFailed(id, why);
    if (exchange.request_id) listener_->OnRequestFailed(*exchange.request_id, why);
  }

  void CloseFor(const Error& why) {
    if (std::exchange(over_, true)) return;
    for (const auto& exchange : exchanges_) exchange->stop.request_stop();
    listener_->OnClosed(why);
  }

  // Whether the callback of a token's renewal may still post to the queue.
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
  Condition all_ended_;
  std::string version_ GUARDED_BY(mutex_), session_id_ GUARDED_BY(mutex_);
  std::size_t under_way_ GUARDED_BY(mutex_) = 0;
  std::size_t waiting_bytes_ GUARDED_BY(mutex_) = 0;
  bool closed_ = false;  // used by Close's caller only

  // --- used by the queue's thread only
  std::set<std::shared_ptr<Exchange>> exchanges_;
  std::string url_ = address_.url;  // changed by permanent redirects
  std::string post_url_;            // empty: not known yet (HTTP+SSE)
  bool legacy_ = false;
  Error refusal_;  // of the first POST
  OutgoingMessage held_back_;
  bool over_ = false;
  std::optional<Error> ending_;  // why nothing more is sent
  bool probing_ = false;
  std::map<std::int64_t, std::string> refused_;  // rejected requests that wait for the probe's end, with their answers

  TimedQueue queue_;  // last: ends before what it uses is gone
};

void Exchange::OnHead(int its_status, const HttpHeaders& headers) {
  status = its_status;
  for (const auto& [name, value] : headers) {
    if (name == "content-type") {
      content_type = value;
    } else if (name == "location") {
      location = value;
    } else if (name == "www-authenticate" && !challenge) {
      challenge = ParseChallenge(value);
    } else if (name == "mcp-session-id" && is_initialize && status < 300) {
      channel_.TakeSession(value);
    }
  }
  is_stream = status < 300 && IsEventStream(content_type);
  // Some servers label their JSON wrongly or not at all.
  const bool is_post = purpose == Purpose::kPost || purpose == Purpose::kSubscribe;
  is_kept_ = is_post && (status < 300 ? !is_stream : IsJson(content_type));
}

bool Exchange::OnData(std::string_view bytes) {
  if (is_kept_) {
    const bool is_error = status >= 300;
    const bool fits = body.size() + bytes.size() <= (is_error ? kMaxErrorBytes : kMaxMcpMessageBytes);
    too_long = !fits && !is_error;
    if (fits) body += bytes;
    return fits;
  }
  if (!is_stream) return status < 300;  // an error's body is ignored
  parser.Feed(bytes);
  while (const auto event = parser.Next()) {
    ++events;
    if (purpose == Purpose::kLegacy && event->type == "endpoint") {
      channel_.TakeEndpoint(std::string(event->data));
    } else if (!event->data.empty()) {  // servers use various event types for messages
      has_no_room = !channel_.Deliver(std::string(event->data)) || has_no_room;
    }
  }
  return !has_no_room && !parser.overflowed();
}

}  // namespace

std::unique_ptr<Channel> OpenHttpChannel(Transport& transport, HttpServerAddress address) {
  return std::make_unique<HttpChannel>(transport, std::move(address));
}

}  // namespace reprise
