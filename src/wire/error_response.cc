#include "wire/error_response.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/logging.h"

namespace reprise {
namespace {

// `pause`: how long a remote server asks us to wait.
Reply MakeErrorReply(int status, Json error, std::optional<std::chrono::milliseconds> pause = {}) {
  Reply reply{.status = status, .body = DumpJson({{"error", std::move(error)}})};
  if (status == 503) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(pause.value_or(std::chrono::seconds(1)));
    reply.headers.emplace_back("Retry-After", std::to_string(std::max<std::int64_t>(1, seconds.count())));
  }
  if (status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"reprise\"");
  return reply;
}

}  // namespace

Reply JsonReply(const Json& json, int status) { return {.status = status, .body = DumpJson(json)}; }

int HttpStatus(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 400;
    case ErrorCode::kUnauthenticated:
      return 401;
    case ErrorCode::kForbidden:
      return 403;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kConflict:
    case ErrorCode::kCancelled:
      return 409;
    case ErrorCode::kGone:
      return 410;
    case ErrorCode::kTooLarge:
      return 413;
    case ErrorCode::kUnsupportedType:
      return 415;
    case ErrorCode::kUnprocessable:  // not 409, because clients retry that by themselves
    case ErrorCode::kCorruption:
      return 422;
    case ErrorCode::kIo:
    case ErrorCode::kProvider:  // a provider's failure is an event, or for audio another kind
    case ErrorCode::kInternal:
      return 500;
    case ErrorCode::kStorageFull:
      return 507;
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kUnavailable:
      return 503;
  }
  return 500;
}

Reply ErrorReply(const Error& error) {
  const int status = HttpStatus(error.code);
  if (!error.detail.empty() || status == 500) {
    LogWarning("request failed", {{"code", error.reason}, {"error", error.message}, {"detail", error.detail}});
  }
  const std::string code = error.reason.empty() ? std::string(DefaultReason(error.code)) : error.reason;
  Json body = {{"code", code}, {"message", error.message}, {"retryable", error.retryable || status == 503}};
  if (!error.details_json.empty()) {
    if (auto details = ParseJson(error.details_json)) body["details"] = std::move(*details);
  }
  return MakeErrorReply(status, std::move(body), error.retry_after);
}

Reply ProtocolErrorReply(int status, std::string code, std::string message) {
  const bool retryable = status == 408 || status == 429 || status == 503;
  return MakeErrorReply(status, {{"code", std::move(code)}, {"message", std::move(message)}, {"retryable", retryable}});
}

Reply BodyTooLarge(std::uint64_t most) {
  constexpr std::uint64_t kMebibyte = 1024 * 1024;
  const std::string limit =
      most >= kMebibyte ? std::to_string(most / kMebibyte) + " MiB" : std::to_string(most) + " bytes";
  return ProtocolErrorReply(413, "too_large", "the body is larger than " + limit);
}

}  // namespace reprise
