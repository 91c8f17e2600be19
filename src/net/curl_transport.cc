#include "net/curl_transport.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/try.h"
#include "net/curl_loop.h"

namespace reprise {
namespace {

bool StartsWithIgnoringCase(std::string_view text, std::string_view lower_case_prefix) {
  if (text.size() < lower_case_prefix.size()) return false;
  return std::equal(lower_case_prefix.begin(), lower_case_prefix.end(), text.begin(), [](char expected, char c) {
    return expected == (c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c);
  });
}

bool IsToken(std::string_view text) {
  constexpr std::string_view kTokenCharacters =
      "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return !text.empty() && text.find_first_not_of(kTokenCharacters) == std::string_view::npos;
}

bool HasControlCharacter(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

// Refuses requests that could inject a second header or request. Messages do not quote values, which may be secrets.
Result<void> CheckRequest(const HttpRequest& request) {
  if (!StartsWithIgnoringCase(request.url, "http://") && !StartsWithIgnoringCase(request.url, "https://")) {
    return Fail(ErrorCode::kInvalidArgument, "the URL must begin with http:// or https://");
  }
  if (HasControlCharacter(request.url)) return Fail(ErrorCode::kInvalidArgument, "the URL is not valid");
  if (!IsToken(request.method)) return Fail(ErrorCode::kInvalidArgument, "the HTTP method is not valid");
  for (const auto& [name, value] : request.headers) {
    if (!IsToken(name)) return Fail(ErrorCode::kInvalidArgument, "a header name is not valid");
    if (HasControlCharacter(value))
      return Fail(ErrorCode::kInvalidArgument, "the value of header " + name + " is not valid");
  }
  return {};
}

}  // namespace

CurlTransport::CurlTransport(long receive_bytes) : receive_bytes_(receive_bytes) {}
CurlTransport::~CurlTransport() = default;

Result<CurlLoop*> CurlTransport::StartedLoop() {
  const MutexLock lock(mutex_);
  if (!loop_) {
    auto loop = TRY(CurlLoop::Start());
    loop_ = std::move(loop);
  }
  return loop_.get();
}

void CurlTransport::Send(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop, Done done) {
  if (auto checked = CheckRequest(request); !checked) return done(std::move(checked));
  if (stop.stop_requested()) return done(Fail(ErrorCode::kCancelled, "the request was cancelled"));
  auto loop = StartedLoop();
  if (!loop) return done(Fail(loop.error()));
  const auto transfer = std::make_shared<CurlTransfer>(std::move(request), handler, std::move(done), receive_bytes_);
  // Before adding it, because after that it may end at any moment, and the callback with it.
  transfer->OnStop(std::move(stop), [loop = *loop, weak = std::weak_ptr(transfer)] {
    if (auto stopped = weak.lock()) loop->Cancel(std::move(stopped));
  });
  (*loop)->Add(transfer);
}

}  // namespace reprise
