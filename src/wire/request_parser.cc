#include "wire/request_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>
#include <utility>

#include "base/text.h"
#include "wire/error_response.h"

namespace reprise {

namespace {

constexpr int kMaxDigits = 16;  // of 64 bits

Reply Malformed() {
  return ProtocolErrorReply(400, "bad_request", "malformed chunked body; extensions and trailers are not accepted");
}

}  // namespace

ChunkedBody::Fed ChunkedBody::Take(std::string_view bytes, std::string& body, std::size_t most) {
  Fed fed;
  while (fed.used < bytes.size() && !done()) {
    if (state_ == State::kData) {
      const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(size_, bytes.size() - fed.used));
      body.append(bytes.substr(fed.used, part));
      fed.used += part;
      size_ -= part;
      if (size_ == 0) state_ = State::kDataCr;
    } else {
      fed.refusal = TakeByte(bytes[fed.used++], body.size(), most);
      if (fed.refusal) return fed;
    }
  }
  return fed;
}

// Takes one byte of the framing.
std::optional<Reply> ChunkedBody::TakeByte(char byte, std::size_t taken, std::size_t most) {
  const auto expect = [&](char wanted, State next) -> std::optional<Reply> {
    if (byte != wanted) return Malformed();
    state_ = next;
    return std::nullopt;
  };
  switch (state_) {
    case State::kSize:
      if (const int digit = HexDigit(byte); digit >= 0 && digits_ < kMaxDigits) {
        size_ = size_ * 16 + static_cast<unsigned>(digit);
        ++digits_;
        return std::nullopt;
      }
      if (digits_ == 0) return Malformed();
      return expect('\r', State::kSizeEnd);
    case State::kSizeEnd:
      if (size_ > most - taken) return BodyTooLarge(most);
      digits_ = 0;
      return expect('\n', size_ == 0 ? State::kLastCr : State::kData);
    case State::kDataCr:
      return expect('\r', State::kDataLf);
    case State::kDataLf:
      return expect('\n', State::kSize);
    case State::kLastCr:
      return expect('\r', State::kLastLf);
    case State::kLastLf:
      return expect('\n', State::kDone);
    case State::kData:
    case State::kDone:
      break;  // Take handles these
  }
  return std::nullopt;
}

namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

constexpr std::string_view kHeadEnd = "\r\n\r\n";

Reply BadRequest(std::string message) { return ProtocolErrorReply(400, "bad_request", std::move(message)); }

bool HasBareLineEnd(std::string_view bytes, std::size_t from) {
  for (std::size_t i = from; i < bytes.size(); ++i) {
    if (bytes[i] == '\n' && (i == 0 || bytes[i - 1] != '\r')) return true;
    if (bytes[i] == '\r' && i + 1 < bytes.size() && bytes[i + 1] != '\n') return true;
    if (bytes[i] == '\0') return true;
  }
  return false;
}

// True for another major version, such as in the first line of HTTP/2 with prior knowledge.
bool IsOtherVersion(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t at = line.rfind(" HTTP/");
  if (at == std::string_view::npos) return false;
  const std::string_view version = line.substr(at + 6);
  return !version.empty() && !version.starts_with("1.") &&
         version.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool HasFoldedLine(std::string_view head) {
  return head.find("\r\n ") != std::string_view::npos || head.find("\r\n\t") != std::string_view::npos;
}

Reply HeadTooLarge() {
  return ProtocolErrorReply(431, "headers_too_large", "the request line and headers are larger than the limit");
}
Reply TargetTooLong() {
  return ProtocolErrorReply(414, "target_too_long", "the request target is longer than the limit");
}

bool AllDigits(std::string_view text) {
  return !text.empty() && text.size() <= 18 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

HeadScan ScanHead(std::string_view bytes, std::size_t known, const HttpLimits& limits) {
  const std::size_t from = known < kHeadEnd.size() ? 0 : known - (kHeadEnd.size() - 1);
  const bool too_large = bytes.size() > limits.head_bytes;
  bytes = bytes.substr(0, limits.head_bytes);  // ignores the rest
  const std::size_t found = bytes.find(kHeadEnd, from);
  const std::size_t end = found == std::string_view::npos ? bytes.size() : found + kHeadEnd.size();
  if (HasBareLineEnd(bytes.substr(0, end), from)) return {.end = {}, .refusal = BadRequest("malformed line ending")};
  const std::size_t line = std::min(bytes.find("\r\n"), bytes.size());
  // Leaves room for the method and the version beside the longest target.
  if (line > limits.target_bytes + 64) return {.end = {}, .refusal = TargetTooLong()};
  if (found == std::string_view::npos && too_large) return {.end = {}, .refusal = HeadTooLarge()};
  if (found == std::string_view::npos) return {};
  if (HasFoldedLine(bytes.substr(0, end - 2))) return {.end = {}, .refusal = BadRequest("folded header line")};
  return {.end = end, .refusal = {}};
}

// Reads only heads and keeps the fields in our own types.
class RequestParser::Impl : public http::basic_parser<true> {
 public:
  explicit Impl(const HttpLimits& limits) : body_bytes(limits.body_bytes), limits_(limits) {
    eager(false);
    header_limit(static_cast<std::uint32_t>(limits.head_bytes));
    body_limit(std::numeric_limits<std::uint64_t>::max());  // TakeBody counts bodies
  }

  RequestHead head;
  std::string body;
  std::optional<Reply> refusal;
  bool has_body = false;
  std::optional<ChunkedBody> chunks;  // if the body is chunked
  std::uint64_t missing = 0;          // bytes still to come if the body's length is known
  std::size_t body_bytes;             // the limit

  std::optional<Reply> CheckFraming();

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int version, error_code& ec) override {
    head.method.assign(method.data(), method.size());
    head.target.assign(target.data(), target.size());
    head.version = version;
    if (head.target.size() > limits_.target_bytes) Refuse(TargetTooLong(), ec);
  }
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_field_impl(http::field, string_view name, string_view value, error_code& ec) override {
    if (head.headers.size() >= limits_.headers) {
      return Refuse(ProtocolErrorReply(431, "too_many_headers", "the request has too many headers"), ec);
    }
    std::string lower(name.data(), name.size());
    for (char& c : lower) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    head.headers.emplace_back(std::move(lower), std::string(value.data(), value.size()));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}
  std::size_t on_body_impl(string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}

  void Refuse(Reply reply, error_code& ec) {
    refusal = std::move(reply);
    ec = http::error::body_limit;  // any error would do; it stops the parser
  }

  const HttpLimits& limits_;
};

// Beast accepts "5, 5" as a length, and takes a body in an unknown coding for no body. Both are refused here.
std::optional<Reply> RequestParser::Impl::CheckFraming() {
  const std::size_t lengths = head.Count("content-length"), codings = head.Count("transfer-encoding");
  if (lengths + codings > 1) return BadRequest("ambiguous message length");
  if (lengths == 1 && !AllDigits(*head.Find("content-length"))) return BadRequest("invalid Content-Length");
  if (codings == 1) {
    if (head.version < 11 || !EqualsIgnoringCase(*head.Find("transfer-encoding"), "chunked") || !chunked()) {
      return BadRequest("unsupported Transfer-Encoding");
    }
    chunks.emplace();
  }
  missing = content_length() ? *content_length() : 0;
  has_body = chunks || missing > 0;
  if (head.target.empty() || head.target.front() != '/' || head.target.find('#') != std::string::npos) {
    return BadRequest("the request target must be a path");
  }
  return std::nullopt;
}

RequestParser::RequestParser(const HttpLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

std::optional<Reply> RequestParser::TakeHead(std::string_view head) {
  if (IsOtherVersion(head)) {
    return ProtocolErrorReply(505, "version_not_supported", "this server only speaks HTTP/1.1");
  }
  while (!head.empty() && !impl_->is_header_done()) {
    error_code ec;
    const std::size_t used = impl_->put(boost::asio::const_buffer(head.data(), head.size()), ec);
    if (impl_->refusal) return std::move(impl_->refusal);
    if (ec) return BadRequest("malformed request");
    head.remove_prefix(used);
  }
  if (!impl_->is_header_done() || !head.empty()) return BadRequest("malformed request");
  return impl_->CheckFraming();
}

void RequestParser::LimitBody(std::size_t bytes) { impl_->body_bytes = bytes; }

RequestParser::Fed RequestParser::TakeBody(std::string_view bytes) {
  Impl& impl = *impl_;
  if (impl.chunks) {
    auto fed = impl.chunks->Take(bytes, impl.body, impl.body_bytes);
    return {.used = fed.used, .refusal = std::move(fed.refusal)};
  }
  const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(impl.missing, bytes.size()));
  if (part > impl.body_bytes - impl.body.size()) return {.used = 0, .refusal = BodyTooLarge(impl.body_bytes)};
  impl.body.append(bytes.substr(0, part));
  impl.missing -= part;
  return {.used = part, .refusal = {}};
}

const RequestHead& RequestParser::head() const { return impl_->head; }
bool RequestParser::has_body() const { return impl_->has_body; }
std::optional<std::uint64_t> RequestParser::content_length() const {
  const auto length = impl_->content_length();
  return length ? std::optional<std::uint64_t>(*length) : std::nullopt;
}
bool RequestParser::done() const { return impl_->chunks ? impl_->chunks->done() : impl_->missing == 0; }
bool RequestParser::keep_alive() const { return impl_->keep_alive(); }
RequestHead RequestParser::ReleaseHead() { return std::move(impl_->head); }
std::string RequestParser::ReleaseBody() { return std::move(impl_->body); }

}  // namespace reprise
