#include "net/curl_transfer.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/authorities.h"
#include "base/logging.h"
#include "base/public_address.h"
#include "base/text.h"

namespace reprise {
namespace {

Error NotAvailable(std::string detail) {
  return MakeError(ErrorCode::kInternal, "the HTTP client library (libcurl) is not available", std::move(detail));
}

}  // namespace

Result<const CurlLibrary*> CurlLibrary::Load() {
  static const CurlLibrary library;
  if (!library.problem().empty()) return Fail(NotAvailable(library.problem()));
  static const CURLcode begun = library.global_init(CURL_GLOBAL_DEFAULT);
  if (begun != CURLE_OK) return Fail(NotAvailable("curl_global_init failed"));
  return &library;
}

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr long kUploadBufferBytes = 64 * 1024;
constexpr long kSmallUploadBufferBytes = 16 * 1024;
// A body up to this size goes out in one piece with the head.
constexpr std::size_t kSmallBodyBytes = 32 * 1024;
constexpr std::size_t kMaxHeadBytes = 256 * 1024;
constexpr int kCurlTooLarge = 100;   // CURLE_TOO_LARGE, which libcurl has since 8.6
constexpr milliseconds kLull{3000};  // see CurlTransport
// Limits for reading the rest of an unwanted response so that its connection can be reused.
constexpr milliseconds kDrainTime{250};
constexpr std::size_t kMaxDrainedBytes = 64 * 1024;

Error AddressNotAllowed(std::string message) { return Refused(Reason::kAddressNotAllowed, std::move(message)); }

// "HTTP/1.1 200 OK" -> 200.
int StatusOf(std::string_view status_line) {
  int status = 0;
  const std::size_t space = status_line.find(' ');
  if (space == std::string_view::npos) return 0;
  const std::string_view rest = status_line.substr(space + 1);
  std::from_chars(rest.data(), rest.data() + rest.size(), status);
  return status;
}

bool HasHeader(const HttpHeaders& headers, std::string_view lower_case_name) {
  return std::ranges::any_of(headers, [&](const auto& header) { return LowerCase(header.first) == lower_case_name; });
}

}  // namespace

void CurlTransfer::Finish(Result<void> result) {
  handler_ = nullptr;
  on_stop_.reset();
  const auto done = std::exchange(done_, nullptr);
  Guarded("who awaits an answer", [&] { done(std::move(result)); });
}

void CurlTransfer::Begin(const CurlLibrary& curl, CURL* easy, std::vector<CurlTransfer*>& touched, SteadyTime now) {
  curl_ = &curl;
  easy_ = easy;
  touched_list_ = &touched;
  started_ = last_life_ = now;
  Set(CURLOPT_URL, request_.url.c_str());
  Set(CURLOPT_PRIVATE, this);
  Set(CURLOPT_WRITEFUNCTION, &OnBody);
  Set(CURLOPT_WRITEDATA, this);
  Set(CURLOPT_HEADERFUNCTION, &OnHeader);
  Set(CURLOPT_HEADERDATA, this);
  SetConnection();
  if (is_web_socket()) return SetTunnel();
  SetMethodAndBody();
  SetHeaders();
  if (request_.signature) SetSignature();
}

void CurlTransfer::SetConnection() {
  Set(CURLOPT_PROTOCOLS_STR, "http,https");
  Set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  Set(CURLOPT_FOLLOWLOCATION, request_.max_redirects > 0 ? 1L : 0L);
  Set(CURLOPT_MAXREDIRS, static_cast<long>(request_.max_redirects));
  Set(CURLOPT_CONNECTTIMEOUT_MS, std::max(1L, static_cast<long>(request_.connect_timeout.count())));
  Set(CURLOPT_OPENSOCKETFUNCTION, &OnOpenSocket);
  Set(CURLOPT_OPENSOCKETDATA, this);
  Set(CURLOPT_PREREQFUNCTION, &OnRequest);
  Set(CURLOPT_PREREQDATA, this);
  // A proxy would connect instead of us, past the address check, and to its own loopback.
  if (request_.public_addresses_only || IsLoopbackHost(HostOf(request_.url))) Set(CURLOPT_PROXY, "");
  Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (const std::string file = AuthoritiesFile(); !file.empty()) Set(CURLOPT_CAINFO, file.c_str());
  Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  Set(CURLOPT_TCP_NODELAY, 1L);
  Set(CURLOPT_NOSIGNAL, 1L);
  Set(CURLOPT_QUICK_EXIT, 1L);  // else a cancelled transfer waits for its name lookup
  Set(CURLOPT_BUFFERSIZE, receive_bytes_);
}

// A connection without a request. A proxy passes it on unread, and no HTTP/2 is agreed upon.
void CurlTransfer::SetTunnel() {
  Set(CURLOPT_CONNECT_ONLY, 1L);
  Set(CURLOPT_HTTPPROXYTUNNEL, 1L);
  Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
}

void CurlTransfer::SetMethodAndBody() {
  const std::string& method = request_.method;
  const std::string& body = request_.body;
  if (method == "HEAD") {
    Set(CURLOPT_NOBODY, 1L);
    return;
  }
  if (body.empty() && method != "POST") {
    Set(CURLOPT_HTTPGET, 1L);
    if (method != "GET") Set(CURLOPT_CUSTOMREQUEST, method.c_str());
    return;
  }
  Set(CURLOPT_POST, 1L);
  body_bytes_ = static_cast<curl_off_t>(body.size());
  Set(CURLOPT_POSTFIELDSIZE_LARGE, body_bytes_);
  if (body.size() <= kSmallBodyBytes) {
    Set(CURLOPT_UPLOAD_BUFFERSIZE, kSmallUploadBufferBytes);
    Set(CURLOPT_POSTFIELDS, body.c_str());
  } else {
    // A callback supplies the body, so that it sees the progress and can stop once the caller is gone.
    Set(CURLOPT_UPLOAD_BUFFERSIZE, kUploadBufferBytes);
    Set(CURLOPT_READFUNCTION, &OnReadUpload);
    Set(CURLOPT_READDATA, this);
    Set(CURLOPT_SEEKFUNCTION, &OnSeekUpload);
    Set(CURLOPT_SEEKDATA, this);
  }
  if (method != "POST") Set(CURLOPT_CUSTOMREQUEST, method.c_str());
}

void CurlTransfer::SetHeaders() {
  const auto add = [this](const char* line) {
    if (curl_slist* longer = curl_->slist_append(headers_, line)) headers_ = longer;
  };
  std::string line;
  for (const auto& [name, value] : request_.headers) {
    line = name;
    line += value.empty() ? ";" : ": ";  // libcurl's syntax for a header without a value
    line += value;
    add(line.c_str());
  }
  // libcurl 7.88 signs even a header that it must omit, which makes the signature invalid. So keep "Expect"; S3 servers
  // send "100 Continue".
  if (!request_.signature) {
    add("Expect:");  // else libcurl waits a second for "100 Continue" before a body of 1 MiB
    if (!HasHeader(request_.headers, "content-type")) add("Content-Type:");
    // Some servers compress unasked.
    Set(CURLOPT_ACCEPT_ENCODING, "");
    if (!HasHeader(request_.headers, "accept-encoding")) add("Accept-Encoding:");
  }
  if (!HasHeader(request_.headers, "user-agent")) Set(CURLOPT_USERAGENT, "reprise");
  Set(CURLOPT_HTTPHEADER, headers_);
}

// libcurl signs path, query, headers and the body's hash. It takes the hash from our header because it gets the body in
// pieces.
void CurlTransfer::SetSignature() {
  const S3Signature& signature = *request_.signature;
  Set(CURLOPT_AWS_SIGV4, ("aws:amz:" + signature.region + ":s3").c_str());
  Set(CURLOPT_USERNAME, signature.access_key.c_str());
  Set(CURLOPT_PASSWORD, signature.secret_key.c_str());
}

std::optional<curl_socket_t> CurlTransfer::OpenWebSocket(SteadyTime now) {
  const auto opened = Info<curl_socket_t>(CURLINFO_ACTIVESOCKET);
  if (opened == CURL_SOCKET_BAD) return std::nullopt;
  socket = opened;
  last_life_ = now;
  web_socket_ = std::make_unique<WebSocket>(
      request_,
      [this](int status, HttpHeaders headers, std::string_view body) {
        TakeHandshake(status, std::move(headers), body);
      },
      [this](std::string_view message) { return TakeBody(message) && !enough_; });
  std::vector<std::string>().swap(request_.messages);  // the socket has them
  return socket;
}

void CurlTransfer::TakeHandshake(int status, HttpHeaders headers, std::string_view body) {
  head_done_ = true;
  handler_->OnHead(status, headers);
  if (!body.empty()) TakeBody(body);
}

std::optional<Result<void>> CurlTransfer::Converse(SteadyTime now) {
  try {
    std::array<char, 16 << 10> bytes;
    while (!web_socket_->ended()) {
      std::size_t size = 0;
      const CURLcode read = curl_->easy_recv(easy_, bytes.data(), bytes.size(), &size);
      if (read == CURLE_AGAIN) break;
      last_life_ = now;
      if (read == CURLE_OK && size > 0) {
        web_socket_->Take({bytes.data(), size});
      } else {
        web_socket_->TakeEnd();
      }
    }
    const bool is_lost = !Send();
    if (is_lost && !web_socket_->ended()) web_socket_->TakeEnd();
  } catch (...) {
    handler_threw_ = true;
    return ResultOf(CURLE_OK);
  }
  return web_socket_->ended();
}

// False if the connection is lost.
bool CurlTransfer::Send() {
  while (!web_socket_->to_send().empty()) {
    const std::string_view rest = web_socket_->to_send();
    std::size_t size = 0;
    const CURLcode sent = curl_->easy_send(easy_, rest.data(), rest.size(), &size);
    if (sent == CURLE_AGAIN || (sent == CURLE_OK && size == 0)) return true;
    if (sent != CURLE_OK) return false;
    web_socket_->Sent(size);
    last_life_ = std::chrono::steady_clock::now();
  }
  return true;
}

void CurlTransfer::Touch() {
  if (!std::exchange(touched_, true)) touched_list_->push_back(this);
}

bool CurlTransfer::EndBatch(SteadyTime now) {
  touched_ = false;
  last_life_ = now;
  if (std::exchange(got_body_, false)) TellBatchEnd();
  return enough_ && !finished();
}

void CurlTransfer::TellBatchEnd() {
  awaits_lull_ = true;
  if (handler_ == nullptr) return;
  try {
    if (!handler_->OnBatchEnd()) enough_ = true;
  } catch (...) {
    handler_threw_ = true;
    enough_ = true;
  }
}

bool CurlTransfer::EndLull(SteadyTime now) {
  if (!awaits_lull_ || now < last_life_ + kLull) return false;
  TellBatchEnd();
  awaits_lull_ = false;
  return enough_ && !finished();
}

// Exceptions must not pass through libcurl; a handler that throws ends its transfer.
std::size_t CurlTransfer::OnHeader(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  try {
    return transfer.TakeHeaderLine({bytes, size * count}) ? size * count : 0;
  } catch (...) {
    transfer.handler_threw_ = true;
    return 0;
  }
}

std::size_t CurlTransfer::OnBody(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  try {
    return transfer.TakeBody({bytes, size * count}) ? size * count : 0;
  } catch (...) {
    transfer.handler_threw_ = true;
    return 0;
  }
}

bool CurlTransfer::TakeHeaderLine(std::string_view line) {
  Touch();
  if (head_done_ || finished()) return true;  // trailers
  if (line.starts_with("HTTP/")) {
    head_.clear();
    head_bytes_ = 0;
    status_ = StatusOf(line);
    is_unanswered_ = false;
    reading_head_ = true;
    return true;
  }
  head_bytes_ += line.size();
  if (head_bytes_ > kMaxHeadBytes) {
    head_too_large_ = true;
    return false;
  }
  if (Trimmed(line).empty()) return EndHead();
  const std::size_t colon = line.find(':');
  if (reading_head_ && colon != std::string_view::npos) {
    head_.emplace_back(LowerCase(Trimmed(line.substr(0, colon))), std::string(Trimmed(line.substr(colon + 1))));
  }
  return true;
}

// Hands over the head, unless another follows: after a 1xx, and after a redirect that libcurl will follow.
bool CurlTransfer::EndHead() {
  reading_head_ = false;
  if (status_ < 200) return true;
  const bool redirect = status_ >= 300 && status_ < 400 && HasHeader(head_, "location");
  if (redirect && request_.max_redirects > 0) return true;
  head_done_ = true;
  handler_->OnHead(status_, std::exchange(head_, {}));
  // Free the request's body, perhaps the whole history of a chat, while the stream lasts. Only after a successful head
  // is it certain not to be sent again.
  if (status_ < 300 && WholeBodySent()) std::string().swap(request_.body);
  return true;
}

bool CurlTransfer::WholeBodySent() const { return Info<curl_off_t>(CURLINFO_SIZE_UPLOAD_T) >= body_bytes_; }

bool CurlTransfer::TakeBody(std::string_view bytes) {
  Touch();
  if (finished()) {
    drained_ += bytes.size();
    return drained_ <= kMaxDrainedBytes;
  }
  // Ignore the rest of this read; EndBatch tells the loop.
  if (enough_ || !head_done_) return true;
  got_body_ = true;
  if (!handler_->OnData(bytes)) enough_ = true;
  return true;
}

std::size_t CurlTransfer::OnReadUpload(char* to, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  if (transfer.finished()) return CURL_READFUNC_ABORT;
  const std::string& body = transfer.request_.body;
  const std::size_t bytes = std::min(size * count, body.size() - transfer.upload_offset_);
  std::memcpy(to, body.data() + transfer.upload_offset_, bytes);
  transfer.upload_offset_ += bytes;
  transfer.last_life_ = std::chrono::steady_clock::now();
  return bytes;
}

// Called to send the body again, after a redirect or if a kept connection turns out to be dead (see OnRequest).
int CurlTransfer::OnSeekUpload(void* self, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  if (transfer.finished() || transfer.head_done_ || origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_FAIL;
  if (static_cast<std::size_t>(offset) > transfer.request_.body.size()) return CURL_SEEKFUNC_FAIL;
  transfer.upload_offset_ = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

// libcurl sends a request once more by itself, on each kept connection that dies before the answer. The server may have
// acted on it, so only what is safe to repeat (RFC 9110, section 9.2.2) is sent again.
int CurlTransfer::OnRequest(void* self, char*, char*, int, int) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  const bool acts = transfer.request_.method == "POST" || transfer.request_.method == "PATCH";
  const bool is_repeated =
      std::exchange(transfer.is_unanswered_, true) && transfer.Info<long>(CURLINFO_REQUEST_SIZE) > 0;
  return acts && is_repeated ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

// This is the address that will be connected to, after all lookups and on every redirect, so no name can change between
// check and use.
curl_socket_t CurlTransfer::OnOpenSocket(void* self, curlsocktype, curl_sockaddr* address) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  if (transfer.finished()) return CURL_SOCKET_BAD;
  if (transfer.request_.public_addresses_only && !IsPublicAddress(&address->addr, address->addrlen)) {
    transfer.address_refused_ = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

Result<void> CurlTransfer::ResultOf(CURLcode code) const {
  const std::string detail = curl_->easy_strerror(code);
  if (handler_threw_) return Fail(ErrorCode::kInternal, "the response could not be handled");
  if (enough_ || code == CURLE_OK) return {};
  if (address_refused_ && code == CURLE_COULDNT_CONNECT) {
    return Fail(AddressNotAllowed("the address is not on the public internet"));
  }
  // The errors for libcurl's own limit on a header line, in old and new versions.
  const bool line_too_long = code == CURLE_OUT_OF_MEMORY || static_cast<int>(code) == kCurlTooLarge;
  if (head_too_large_ || (line_too_long && !head_done_ && Info<curl_off_t>(CURLINFO_PRETRANSFER_TIME_T) > 0)) {
    return Fail(Reason::kHeadTooLarge, "the server's response headers are too large", detail);
  }
  switch (code) {
    case CURLE_URL_MALFORMAT:
      return Fail(ErrorCode::kInvalidArgument, "the URL is not valid", detail);
    case CURLE_UNSUPPORTED_PROTOCOL:
      if (Info<long>(CURLINFO_REDIRECT_COUNT) > 0)
        return Fail(AddressNotAllowed("the redirect is not to http or https"));
      return Fail(Reason::kConnectionLost, "the server did not answer in HTTP", detail);
    case CURLE_TOO_MANY_REDIRECTS:
      return Fail(Reason::kTooManyRedirects, "too many redirects");
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return Fail(Reason::kNameNotResolved, "the server's name could not be resolved", detail);
    case CURLE_COULDNT_CONNECT:
      return Fail(Reason::kConnectionFailed, "could not connect to the server", detail);
    case CURLE_OPERATION_TIMEDOUT:  // the connect timeout is the only libcurl time limit in use
      return Fail(Reason::kConnectTimeout, "connecting to the server took too long");
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_USE_SSL_FAILED:
      return Fail(Reason::kTlsFailed, "no secure connection to the server could be made", detail);
    case CURLE_OUT_OF_MEMORY:
      return Fail(ErrorCode::kInternal, "out of memory", detail);
    default:
      return Fail(Reason::kConnectionLost, "the connection to the server was lost", detail);
  }
}

bool CurlTransfer::BeginDraining(SteadyTime now) {
  // Stop an unfinished upload, because its caller is gone.
  if (!WholeBodySent() || handler_threw_ || is_web_socket()) return false;
  draining_until_ = now + kDrainTime;
  return true;
}

SteadyTime CurlTransfer::NextDeadline() const {
  if (draining_until_) return *draining_until_;
  const SteadyTime idle = last_life_ + (awaits_lull_ ? std::min(kLull, request_.idle_timeout) : request_.idle_timeout);
  return request_.total_timeout ? std::min(idle, started_ + *request_.total_timeout) : idle;
}

std::optional<Error> CurlTransfer::CheckLimits(SteadyTime now) {
  if (request_.total_timeout && now >= started_ + *request_.total_timeout) {
    return Refused(Reason::kTotalTimeout, "the server took too long to answer");
  }
  // While connecting, idle_timeout does not count; libcurl enforces connect_timeout.
  const curl_off_t connected_after = web_socket_ ? 1 : Info<curl_off_t>(CURLINFO_PRETRANSFER_TIME_T);
  if (touched_) last_life_ = std::max(last_life_, now);  // its batch has not ended yet
  last_life_ = connected_after == 0 ? now : std::max(last_life_, started_ + microseconds(connected_after));
  if (now < last_life_ + request_.idle_timeout) return std::nullopt;
  return Refused(Reason::kIdleTimeout, "the server was silent for too long");
}

}  // namespace reprise
