#include "wire/connection.h"

#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <exception>
#include <new>
#include <random>
#include <utility>

#include "base/logging.h"
#include "base/try.h"
#include "reprise/audio.h"
#include "wire/error_response.h"
#include "wire/multipart.h"

namespace reprise {
namespace {

// How much a client may send ahead while it listens to a stream.
constexpr std::size_t kMaxSentAhead = 64 * 1024;
// How many bytes, and for how long, a client may still send after its last answer, so that it can read that answer.
constexpr std::size_t kMaxLingerBytes = 4 * 1024 * 1024;
constexpr std::chrono::milliseconds kLingerTime{2'000};

// Some clients send a blank line after a body. A flood of them is refused.
constexpr int kMaxBlankLines = 8;

std::string HttpDate() {
  const time_t now = ::time(nullptr);
  tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 64> text;
  return {text.data(), ::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc)};
}

std::string StatusLine(int status, const std::string& request_id) {
  return "HTTP/1.1 " + std::to_string(status) + " " + std::string(StatusText(status)) + "\r\nDate: " + HttpDate() +
         "\r\nX-Request-Id: " + request_id + "\r\n";
}

void AppendHeader(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ").append(value).append("\r\n");
}

std::string_view MediaType(std::string_view content_type) {
  return TrimBlanks(content_type.substr(0, content_type.find(';')));
}

// Keeps methods that clients make up out of the log.
std::string_view MethodInLog(std::string_view method) {
  static constexpr std::array<std::string_view, 7> kMethods{"GET", "POST", "PATCH", "DELETE", "HEAD", "PUT", "OPTIONS"};
  const auto known = std::ranges::find(kMethods, method);
  return known == kMethods.end() ? "-" : *known;
}

// Monitoring asks these routes every few seconds.
bool IsProbe(std::string_view route) { return route == "/healthz" || route == "/readyz" || route == "/metrics"; }

Error OtherSettings(const HttpOptions& options) {
  const bool is_left = options.is_left && options.is_left();
  return {.code = ErrorCode::kConflict,
          .reason = "other_settings",
          .message = "this server runs turns with other settings than the client was given",
          .details_json = std::string("{\"is_left\":") + (is_left ? "true}" : "false}")};
}

void CountResponse(HttpMetrics& metrics, int status) {
  auto& counter = status < 400 ? metrics.responses_2xx : status < 500 ? metrics.responses_4xx : metrics.responses_5xx;
  counter.fetch_add(1, std::memory_order_relaxed);
}

// A handler that throws is a bug of ours. The client learns only that there was an internal error.
Outcome Call(const std::function<Result<Outcome>()>& handler) {
  try {
    auto outcome = handler();
    if (outcome) return std::move(*outcome);
    return ErrorReply(outcome.error());
  } catch (const std::bad_alloc&) {
    return ProtocolErrorReply(503, "overloaded", "the system has no memory left for this; try again");
  } catch (const std::exception& e) {
    return ErrorReply(MakeError(ErrorCode::kInternal, "internal error", e.what()));
  } catch (...) {
    return ErrorReply(MakeError(ErrorCode::kInternal, "internal error", "no std::exception"));
  }
}

void AppendPiece(std::string& out, std::string_view bytes, bool chunked) {
  std::array<char, 16> size{};
  char* const end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), /*base=*/16).ptr;
  if (chunked) out.append(size.data(), end).append("\r\n");
  out.append(bytes);
  if (chunked) out.append("\r\n");
}

Result<std::optional<std::string>> CallForPiece(const std::function<Result<std::optional<std::string>>()>& next) {
  try {
    return next();
  } catch (const std::exception& e) {
    return Fail(MakeError(ErrorCode::kInternal, "internal error", e.what()));
  } catch (...) {
    return Fail(MakeError(ErrorCode::kInternal, "internal error", "no std::exception"));
  }
}

}  // namespace

Connection::Connection(Shared& shared, int fd, Peer peer) : shared_(shared), socket_(shared.loop, fd), peer_(peer) {
  shared_.metrics.connections_total.fetch_add(1, std::memory_order_relaxed);
  shared_.metrics.connections.fetch_add(1, std::memory_order_relaxed);
}

// Connects an answer with its line in the log.
std::string Connection::NewRequestId() {
  static const std::string start = [] {
    std::random_device random;
    std::array<char, 24> text;
    const std::uint64_t number = (std::uint64_t{random()} << 32) | random();
    return "req_" + std::string(text.data(), std::to_chars(text.data(), text.data() + text.size(), number, 16).ptr) +
           "_";
  }();
  static std::atomic<std::uint64_t> count{0};
  return start + std::to_string(++count);
}

Connection::~Connection() { shared_.metrics.connections.fetch_sub(1, std::memory_order_relaxed); }

void Connection::Begin() {
  deadline_ = Clock::now() + shared_.options.header_timeout;
  WantRead();
}

void Connection::Refuse() { SendAndEnd(ProtocolErrorReply(503, "overloaded", "too many connections")); }

void Connection::BeginStop() {
  if (state_ == State::kLingering || (state_ == State::kHead && in_.empty())) return Close();
  end_after_ = true;
}

void Connection::EndIfReading() {
  if (state_ == State::kHead || state_ == State::kBody) Close();
}

void Connection::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  upload_ = nullptr;
  next_piece_ = nullptr;
  DropSubscription();  // before the descriptor is closed, because a publisher may be writing to it
  socket_.Close();
  LogRequest();
  shared_.closed(this);
}

void Connection::OnTick(Clock::time_point now) {
  if (stream_) stream_->OnTick(now);
  const bool takes_long =
      state_ == State::kBody || state_ == State::kStreaming || state_ == State::kWaiting || next_piece_;
  if (takes_long && !IsStillWelcome()) return EndUnwelcome();
  if (!deadline_ || now < *deadline_) return;
  const bool mid_request = state_ == State::kBody || (state_ == State::kHead && !idle_);
  if (!mid_request) return Close();
  SendAndEnd(ProtocolErrorReply(408, "request_timeout", "the request did not arrive in time"));
}

bool Connection::IsStillWelcome() {
  if (!shared_.gate.StillCounts(principal_)) return false;
  if (credentials_.headers.empty() || asking_again_) return true;
  // Asks again about an issuer's access token, whose signature is checked again unless it is cached.
  const auto told = [self = shared_from_this(), shown = credentials_.headers](Result<Principal> known) {
    const bool is_refused = !known && known.error().code == ErrorCode::kUnauthenticated;
    self->shared_.loop.Post([self, shown, is_refused] {
      self->asking_again_ = false;
      if (is_refused && self->state_ != State::kClosed && self->credentials_.headers == shown) self->EndUnwelcome();
    });
  };
  asking_again_ = true;
  const auto known = shared_.gate.Identify(credentials_, told);
  if (!known) return true;
  asking_again_ = false;
  return *known || known->error().code != ErrorCode::kUnauthenticated;
}

void Connection::EndUnwelcome() {
  if (state_ != State::kBody) return Close();
  SendAndEnd(ErrorReply(Reason::kInvalidToken, "the token has ended, and this request with it"));
}

// --- reading --------------------------------------------------------------------------------------------------------

void Connection::WantRead() {
  if (reading_ || state_ == State::kClosed) return;
  reading_ = true;
  socket_.WhenReadable([self = shared_from_this()] {
    self->reading_ = false;
    self->OnReadable();
  });
}

void Connection::OnReadable() {
  // While a request is answered, later bytes stay in the kernel until the next WantRead.
  if (state_ == State::kClosed || state_ == State::kIdentifying || state_ == State::kHandling ||
      state_ == State::kWriting) {
    return;
  }
  std::vector<char>& buffer = shared_.read_buffer;
  const ssize_t size = ::recv(socket_.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size > 0) return OnBytes({buffer.data(), static_cast<std::size_t>(size)});
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return WantRead();
  OnEndOfInput();
}

void Connection::OnBytes(std::string_view bytes) {
  if (state_ == State::kLingering) {
    lingered_ += bytes.size();
    return lingered_ > kMaxLingerBytes ? Close() : WantRead();
  }
  in_.Append(bytes);
  if (state_ == State::kHead) return ContinueHead();
  if (state_ == State::kBody) return ContinueBody();
  if (in_.size() > kMaxSentAhead) return OnClientGone();
  WantRead();
}

// The client has closed its sending half, or the read failed. If it was listening to a stream it counts as gone,
// because a half-closed connection looks the same as a closed one.
void Connection::OnEndOfInput() {
  if (state_ == State::kStreaming || state_ == State::kWaiting) return OnClientGone();
  Close();
}

// Ignores empty lines before a request (RFC 9112, section 2.2). False if there are too many.
bool Connection::SkipBlankLines() {
  const std::string_view bytes = in_.view();
  std::size_t blank = 0;
  while (blank_lines_ <= kMaxBlankLines && bytes.substr(blank).starts_with("\r\n")) {
    blank += 2;
    ++blank_lines_;
  }
  if (blank > 0) {
    in_.Consume(blank);
    scanned_ = 0;
  }
  return blank_lines_ <= kMaxBlankLines;
}

void Connection::ContinueHead() {
  if (!SkipBlankLines()) {
    return SendAndEnd(ProtocolErrorReply(400, "bad_request", "too many blank lines before the request"));
  }
  if (idle_ && !in_.empty()) {
    idle_ = false;
    deadline_ = Clock::now() + shared_.options.header_timeout;
  }
  HeadScan scan = ScanHead(in_.view(), scanned_, shared_.options.limits);
  scanned_ = in_.size();
  if (scan.refusal) return SendAndEnd(std::move(*scan.refusal));
  if (!scan.end) return WantRead();
  OnHead(*scan.end);
}

void Connection::OnHead(std::size_t size) {
  shared_.metrics.requests_total.fetch_add(1, std::memory_order_relaxed);
  account_ = Account();
  parser_ = std::make_unique<RequestParser>(shared_.options.limits);
  auto malformed = parser_->TakeHead(in_.view().substr(0, size));
  in_.Consume(size);
  scanned_ = 0;
  blank_lines_ = 0;
  const RequestHead& head = parser_->head();
  head_only_ = head.method == "HEAD";
  account_->method = MethodInLog(head.method);
  version_ = head.version;
  error_form_ = shared_.site.root().ErrorFormOf(head.target);
  if (malformed) return SendAndEnd(std::move(*malformed));
  end_after_ = end_after_ || !parser_->keep_alive();
  if (auto refusal = shared_.gate.Check(head, peer_)) return RefuseRequest(std::move(*refusal));
  if (shared_.stopping.load()) return RefuseRequest(ProtocolErrorReply(503, "stopping", "the server is stopping"));
  const std::string* const settings = head.Find("reprise-settings");
  const auto& options = shared_.options;
  if (settings && *settings != options.settings && *settings != options.settings_of_all_chats)
    return SendAndEnd(ErrorReply(OtherSettings(options)));
  auto principal = shared_.gate.Identify(head, [self = shared_from_this()](Result<Principal> known) {
    auto told = std::make_shared<Result<Principal>>(std::move(known));
    self->shared_.loop.Post([self, told] {
      if (self->state_ == State::kIdentifying) self->OnIdentified(std::move(*told));
    });
  });
  if (principal) return OnIdentified(std::move(*principal));
  state_ = State::kIdentifying;
  deadline_.reset();  // Identify has its own limit
}

// The sender is known; no byte of the body has been read.
void Connection::OnIdentified(Result<Principal> principal) {
  if (!principal) return RefuseRequest(ErrorReply(principal.error()));
  principal_ = *std::move(principal);
  credentials_ = {};
  if (principal_.until) {
    for (const auto& header : parser_->head().headers) {
      if (header.first == "authorization") credentials_.headers.push_back(header);
    }
  }
  if (auto refusal = CheckRequest(parser_->head())) return RefuseRequest(std::move(*refusal));
  if (!parser_->has_body()) return Dispatch();
  state_ = State::kBody;
  deadline_ = Clock::now() + shared_.options.body_timeout;
  SendContinue();
  ContinueBody();
}

// An unread body must never be parsed as the next request. And a sender that is not admitted gets a single refusal: a
// thousand small requests in one segment would cost a thousand refusals, and all other clients would wait.
void Connection::RefuseRequest(Reply refusal) {
  const bool let_in = refusal.status != 401 && refusal.status != 403;
  parser_->has_body() || !let_in ? SendAndEnd(std::move(refusal)) : Send(std::move(refusal));
}

std::optional<Reply> Connection::CheckRequest(const RequestHead& head) {
  match_ = shared_.site.root().Find(head.method, head.target);
  if (match_.refusal) return std::move(match_.refusal);
  account_->route = match_.route->path;
  if (auto refusal = CheckAccess(head)) return refusal;
  return CheckBodyHeaders(head);
}

std::optional<Reply> Connection::CheckAccess(const RequestHead& head) {
  const Access access = match_.route->access;
  about_.reset();
  if (access == Access::kAnybody) return std::nullopt;
  const bool is_operator = principal_.role == Principal::Role::kOperator;
  if (!is_operator && (access == Access::kOperator || !principal_.is_tenant())) {
    return ErrorReply(Reason::kOperatorOnly, "only the operator of this server may see this");
  }
  const bool is_admin = principal_.role == Principal::Role::kOrgAdmin;
  if (access == Access::kOrgAdmin && !is_admin && !is_operator) {
    return ErrorReply(Reason::kOrgAdminOnly, "only an admin of the org may see this");
  }
  if (access != Access::kTenantOrAdmin) return std::nullopt;
  // Refuses the operator too, because it would change the operator's own chat of that name.
  auto user = Request{.head = head}.Query("user");
  if (!user) return std::nullopt;
  if (!is_admin) return ErrorReply(Reason::kOrgAdminOnly, "only an admin of the org may see another user's data");
  about_ = Principal{.role = Principal::Role::kUser, .org = principal_.org, .user = *std::move(user)};
  return std::nullopt;
}

std::optional<Reply> Connection::CheckBodyHeaders(const RequestHead& head) {
  if (const std::string* coding = head.Find("content-encoding"); coding && !EqualsIgnoringCase(*coding, "identity")) {
    return ProtocolErrorReply(415, "unsupported_encoding", "encoded bodies are not accepted");
  }
  if (const std::string* expect = head.Find("expect"); expect && !EqualsIgnoringCase(*expect, "100-continue")) {
    return ProtocolErrorReply(417, "expectation_failed", "the only expectation that is met is 100-continue");
  }
  if (!parser_->has_body()) return std::nullopt;
  const HttpLimits& limits = shared_.options.limits;
  std::size_t most = limits.body_bytes;
  if (match_.route->body == BodyKind::kFile || match_.route->body == BodyKind::kAudio) {
    if (head.Count("content-type") > 1) {
      return ProtocolErrorReply(415, "unsupported_type", "the body must have one Content-Type");
    }
    most = (match_.route->body == BodyKind::kFile ? limits.file_bytes : kMaxAudioBytes) + kMaxMultipartFraming;
  } else if (head.Count("content-type") != 1 ||
             !EqualsIgnoringCase(MediaType(*head.Find("content-type")), "application/json")) {
    return ProtocolErrorReply(415, "unsupported_type", "the body must be application/json");
  } else if (match_.route->body == BodyKind::kChat) {
    most = limits.chat_bytes;
  } else if (match_.route->body == BodyKind::kConversation) {
    most = limits.conversation_bytes;
  }
  parser_->LimitBody(most);
  if (parser_->content_length().value_or(0) > most) {
    return BodyTooLarge(most);
  }
  const std::size_t expected = parser_->content_length().value_or(most);
  const bool is_small = match_.route->body == BodyKind::kConversation && expected <= limits.body_bytes;
  if (match_.route->body == BodyKind::kJson || is_small) return std::nullopt;
  return TakeUploadShare(expected);
}

// Large bodies are held in memory until they are stored. All together may take `uploads_bytes`, but a single one is
// always let in. (They do not wait in a file, because it would be plain text and files may have to be sealed.)
std::optional<Reply> Connection::TakeUploadShare(std::size_t most) {
  std::atomic<std::size_t>& all = shared_.upload_bytes;
  const std::size_t before = all.fetch_add(most);
  upload_ = std::shared_ptr<void>(nullptr, [&all, most](void*) { all.fetch_sub(most); });
  if (before == 0 || before + most <= shared_.options.limits.uploads_bytes) return std::nullopt;
  upload_ = nullptr;
  return ProtocolErrorReply(503, "overloaded", "too much is being uploaded; try again");
}

void Connection::SendContinue() {
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  if (version_ < 11 || parser_->head().Find("expect") == nullptr || !in_.empty()) return;
  // So few bytes always fit, unless the client is gone. Then the next read fails.
  (void)::send(socket_.fd(), kContinue.data(), kContinue.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Connection::ContinueBody() {
  auto [used, refusal] = parser_->TakeBody(in_.view());
  in_.Consume(used);
  if (refusal) return SendAndEnd(std::move(*refusal));
  parser_->done() ? Dispatch() : WantRead();
}

void Connection::NextRequest() {
  state_ = State::kHead;
  tenant_ = nullptr;
  idle_ = true;
  parser_.reset();
  if (in_.empty()) in_.Clear();
  deadline_ = Clock::now() + shared_.options.idle_timeout;
  if (shared_.stopping.load()) return Close();
  in_.empty() ? WantRead() : ContinueHead();
}

// --- answering ------------------------------------------------------------------------------------------------------

void Connection::Dispatch() {
  state_ = State::kHandling;
  deadline_.reset();
  auto request = std::make_shared<Request>();
  request->head = parser_->ReleaseHead();
  request->body = parser_->ReleaseBody();
  request->captures = std::move(match_.captures);
  request->principal = principal_;
  request->is_local = shared_.gate.IsLocal(request->head, peer_, principal_);
  parser_.reset();
  const Route& route = *match_.route;
  WorkerPool& workers = route.lane == Lane::kControl  ? shared_.control
                        : route.lane == Lane::kRemote ? shared_.remote
                        : route.lane == Lane::kFiles  ? shared_.files
                                                      : shared_.work;
  if (route.access == Access::kAnybody || !request->principal.is_tenant()) {
    return RunHandler(
        workers, [&route, request, upload = std::exchange(upload_, nullptr)] { return route.handler(*request); },
        route.lane);
  }
  // The tenant's own router has the same route.
  tenant_ = std::make_shared<std::shared_ptr<const Router>>();
  RunHandler(
      workers,
      [&site = shared_.site, tenant = tenant_, request, about = std::exchange(about_, {}),
       upload = std::exchange(upload_, nullptr)]() -> Result<Outcome> {
        *tenant = TRY(about ? site.EnterKnown(*about) : site.Enter(request->principal));
        return (*tenant)->Find(request->head.method, request->head.target).route->handler(*request);
      },
      route.lane);
}

std::string Connection::Whose(Lane lane) const {
  return std::string(lane == Lane::kLong ? "long\n" : "\n") + principal_.org + "\n" + principal_.user;
}

void Connection::RunHandler(WorkerPool& workers, std::function<Result<Outcome>()> handler, Lane lane) {
  workers.Post(Whose(lane), [self = shared_from_this(), handler = std::move(handler)]() mutable {
    auto outcome = std::make_shared<Outcome>(Call(handler));
    IoLoop& loop = self->shared_.loop;
    loop.Post([self = std::move(self), outcome = std::move(outcome)] { self->OnOutcome(std::move(*outcome)); });
  });
}

void Connection::OnOutcome(Outcome outcome) {
  if (state_ == State::kClosed) return;  // a subscription in it ends here, which tells the engine
  if (auto* stream = std::get_if<StreamReply>(&outcome)) return StartStream(std::move(*stream));
  if (auto* deferred = std::get_if<DeferredReply>(&outcome)) return StartWait(std::move(*deferred));
  if (auto* pieces = std::get_if<PiecewiseReply>(&outcome)) return StartPieces(std::move(*pieces));
  Send(std::move(std::get<Reply>(outcome)));
}

void Connection::SendAndEnd(Reply reply) {
  end_after_ = true;
  Send(std::move(reply));
}

void Connection::Send(Reply reply) {
  if (state_ == State::kClosed) return;
  if (error_form_ && reply.status >= 400) error_form_(reply);
  CountResponse(shared_.metrics, reply.status);
  if (!account_) account_ = Account();  // refused before its head was complete
  account_->status = reply.status;
  state_ = State::kWriting;
  deadline_ = Clock::now() + shared_.options.stall_timeout;
  out_sent_ = sent_before_ = 0;
  out_ = StatusLine(reply.status, account_->id);
  const bool has_body = reply.status != 204 && reply.status != 304;
  if (has_body) {
    AppendHeader(out_, "Content-Type", reply.content_type);
    AppendHeader(out_, "Content-Length", std::to_string(reply.body.size()));
  }
  const bool may_be_kept =
      std::ranges::any_of(reply.headers, [](const auto& header) { return header.first == "Cache-Control"; });
  if (!may_be_kept) AppendHeader(out_, "Cache-Control", "no-store");
  AppendHeader(out_, "X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : reply.headers) AppendHeader(out_, name, value);
  if (end_after_) AppendHeader(out_, "Connection", "close");
  if (!end_after_ && version_ < 11) AppendHeader(out_, "Connection", "keep-alive");
  out_ += "\r\n";
  if (!head_only_ && has_body) out_ += reply.body;
  Write();
}

void Connection::Write() {
  if (state_ != State::kWriting) return;
  while (out_sent_ < out_.size()) {
    const ssize_t sent =
        ::send(socket_.fd(), out_.data() + out_sent_, out_.size() - out_sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      out_sent_ += static_cast<std::size_t>(sent);
      account_->bytes = sent_before_ + out_sent_;
      deadline_ = Clock::now() + shared_.options.stall_timeout;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return socket_.WhenWritable([self = shared_from_this()] { self->Write(); });
    } else if (errno != EINTR) {
      return Close();
    }
  }
  OnWritten();
}

void Connection::OnWritten() {
  if (next_piece_) return MakePiece();
  out_ = {};
  account_->complete = true;
  LogRequest();
  if (end_after_) return Linger();
  // Posted, because with a client that pipelines a direct call would deepen the stack with every request.
  shared_.loop.Post([self = shared_from_this()] {
    if (self->state_ == State::kWriting) self->NextRequest();
  });
}

void Connection::StartStream(StreamReply reply) {
  CountResponse(shared_.metrics, 200);
  account_->status = 200;
  const bool chunked = version_ >= 11;
  end_after_ = end_after_ || !chunked;
  std::string head = StatusLine(200, account_->id);
  AppendHeader(head, "Content-Type", "text/event-stream");
  AppendHeader(head, "Cache-Control", "no-cache");
  AppendHeader(head, "Connection", end_after_ ? "close" : "keep-alive");
  AppendHeader(head, "X-Accel-Buffering", "no");
  AppendHeader(head, "X-Content-Type-Options", "nosniff");
  if (chunked) AppendHeader(head, "Transfer-Encoding", "chunked");
  for (const auto& [name, value] : reply.headers) AppendHeader(head, name, value);
  head += "\r\n";
  if (head_only_) {
    state_ = State::kWriting;
    deadline_ = Clock::now() + shared_.options.stall_timeout;
    out_ = std::move(head);
    out_sent_ = sent_before_ = 0;
    return Write();
  }
  state_ = State::kStreaming;
  deadline_.reset();
  hold_ = std::move(reply.hold);
  shared_.metrics.streams_total.fetch_add(1, std::memory_order_relaxed);
  shared_.metrics.streams.fetch_add(1, std::memory_order_relaxed);
  const std::weak_ptr<Connection> weak = weak_from_this();  // we own the stream, so it must not own us
  const auto tell = [weak](void (Connection::*method)()) {
    return [weak, method] {
      if (const auto self = weak.lock()) (self.get()->*method)();
    };
  };
  EventStream::Callbacks callbacks{
      .post = [&loop = shared_.loop](std::function<void()> task) { loop.Post(std::move(task)); },
      .want_writable =
          [weak] {
            const auto self = weak.lock();
            if (self && self->stream_) {
              self->socket_.WhenWritable([weak_stream = std::weak_ptr(self->stream_)] {
                if (const auto stream = weak_stream.lock()) stream->OnWritable();
              });
            }
          },
      .finished = tell(&Connection::OnStreamFinished),
      .failed = tell(&Connection::OnClientGone)};
  EventStream::Options options{.fd = socket_.fd(),
                               .chunked = chunked,
                               .head = std::move(head),
                               .preamble = std::move(reply.preamble),
                               .log = std::move(reply.log),
                               .offset = reply.offset,
                               .live_at = reply.live_at,
                               .forgets = reply.forgets,
                               .heartbeat = shared_.options.heartbeat,
                               .stall_limit = shared_.options.stall_timeout};
  stream_ = std::make_shared<EventStream>(std::move(options), std::move(callbacks));
  stream_->Begin();
  WantRead();
}

void Connection::StartPieces(PiecewiseReply reply) {
  CountResponse(shared_.metrics, 200);
  account_->status = 200;
  const bool chunked = version_ >= 11;
  end_after_ = end_after_ || !chunked;
  out_ = StatusLine(200, account_->id);
  AppendHeader(out_, "Content-Type", "application/json");
  AppendHeader(out_, "Cache-Control", "no-store");
  AppendHeader(out_, "X-Content-Type-Options", "nosniff");
  if (chunked) AppendHeader(out_, "Transfer-Encoding", "chunked");
  if (end_after_) AppendHeader(out_, "Connection", "close");
  out_ += "\r\n";
  if (!head_only_) {
    AppendPiece(out_, reply.first, chunked);
    next_piece_ = std::move(reply.next);
  }
  state_ = State::kWriting;
  deadline_ = Clock::now() + shared_.options.stall_timeout;
  out_sent_ = sent_before_ = 0;
  Write();
}

// The client has taken all pieces so far. A slow client costs no thread and no memory.
void Connection::MakePiece() {
  state_ = State::kHandling;
  deadline_.reset();
  sent_before_ += out_.size();
  out_.clear();
  shared_.work.Post(Whose(), [self = shared_from_this(), next = next_piece_] {
    auto piece = std::make_shared<Result<std::optional<std::string>>>(CallForPiece(next));
    self->shared_.loop.Post([self, piece] { self->OnPiece(std::move(*piece)); });
  });
}

void Connection::OnPiece(Result<std::optional<std::string>> piece) {
  if (state_ == State::kClosed) return;
  if (!piece) {
    LogWarning("a response was cut off",
               {{"route", account_->route}, {"reason", piece.error().reason}, {"detail", piece.error().detail}});
    return Close();
  }
  const bool chunked = version_ >= 11;
  if (*piece) {
    AppendPiece(out_, **piece, chunked);
  } else {
    next_piece_ = nullptr;
    if (chunked) out_ = "0\r\n\r\n";
  }
  state_ = State::kWriting;
  deadline_ = Clock::now() + shared_.options.stall_timeout;
  out_sent_ = 0;
  Write();
}

void Connection::StartWait(DeferredReply reply) {
  state_ = State::kWaiting;
  deadline_.reset();
  const std::weak_ptr<Connection> weak = weak_from_this();
  auto finish = [finish = std::move(reply.finish)]() -> Result<Outcome> {
    auto done = finish();
    if (!done) return tl::unexpected(done.error());
    return Outcome(std::move(*done));
  };
  wait_ = std::make_shared<CompletionWait>(std::move(reply.log), [weak, &loop = shared_.loop, finish] {
    loop.Post([weak, finish] {
      const auto self = weak.lock();
      if (!self || self->state_ != State::kWaiting) return;
      self->state_ = State::kHandling;
      self->DropSubscription();
      self->RunHandler(self->shared_.work, finish);
    });
  });
  hold_ = std::move(reply.hold);
  wait_->Begin();
  WantRead();
}

void Connection::OnStreamFinished() {
  if (state_ != State::kStreaming) return;
  DropSubscription();
  LogRequest();
  end_after_ ? Linger() : NextRequest();
}

void Connection::OnClientGone() {
  if (state_ == State::kStreaming) shared_.metrics.streams_failed.fetch_add(1, std::memory_order_relaxed);
  Close();
}

void Connection::LogRequest() {
  const auto account = std::exchange(account_, std::nullopt);
  if (!account) return;
  const LogLevel level = IsProbe(account->route) ? LogLevel::kDebug : LogLevel::kInfo;
  if (!IsLogged(level)) return;
  const std::chrono::duration<double, std::milli> taken = Clock::now() - account->begun;
  Log(level, "request",
      {{"id", account->id},
       {"method", account->method},
       {"route", account->route},
       {"status", account->status},
       {"ms", taken.count()},
       {"bytes", account->bytes},
       {"complete", account->complete}});
}

// Ends the subscription. No lock of a stream is held while the engine is told.
void Connection::DropSubscription() {
  if (stream_) {
    // This may be complete although OnStreamFinished was not called yet, if the client closed as soon as it had
    // everything.
    const EventStream::Sent sent = stream_->Detach();
    account_->bytes = sent.bytes;
    account_->complete = sent.complete;
    stream_.reset();
    shared_.metrics.streams.fetch_sub(1, std::memory_order_relaxed);
  }
  if (wait_) {
    wait_->Detach();
    wait_.reset();
  }
  hold_ = nullptr;
}

// Closing a socket with unread input resets the connection, and the client may lose the answer that is on its way. So
// only the sending half is closed first, and further input is discarded within limits.
void Connection::Linger() {
  upload_ = nullptr;
  ::shutdown(socket_.fd(), SHUT_WR);
  state_ = State::kLingering;
  if (shared_.stopping.load()) return Close();
  parser_.reset();
  in_.Clear();
  deadline_ = Clock::now() + kLingerTime;
  WantRead();
}

}  // namespace reprise
