#include "model/provider_error.h"

#include "base/text.h"
#include "support/test.h"

namespace reprise::provider_error_test {
namespace {

constexpr std::string_view kKey = "sk-proj-abcdefgh1234";

std::string Reason(int status, std::string code = {}, std::string message = {}) {
  const Error error = MakeProviderError({status, std::move(code), std::move(message)}, kKey);
  CHECK(error.code == ErrorCode::kProvider);
  return error.reason + (error.retryable ? " retryable" : "");
}

TEST_CASE("Provider error: each status has its reason", "[openai]") {
  CHECK(Reason(401) == "provider_auth");
  CHECK(Reason(403) == "provider_auth");
  CHECK(Reason(404) == "provider_not_found");
  CHECK(Reason(429) == "provider_rate_limited retryable");
  CHECK(Reason(429, "insufficient_quota") == "provider_rate_limited");
  CHECK(Reason(400) == "provider_bad_request");
  CHECK(Reason(422) == "provider_bad_request");
  CHECK(Reason(413) == "provider_bad_request");
  CHECK(Reason(408) == "provider_timeout retryable");
  CHECK(Reason(500) == "provider_error retryable");
  CHECK(Reason(502) == "provider_error retryable");
  CHECK(Reason(503) == "provider_overloaded retryable");
  CHECK(Reason(529) == "provider_overloaded retryable");
  CHECK(Reason(302) == "provider_bad_request");
}

TEST_CASE("Provider error: a conversation that is too long has its own reason", "[openai]") {
  CHECK(Reason(400, "context_length_exceeded") == "provider_context_length");
  CHECK(Reason(400, "", "This model's maximum context length is 8192 tokens.") == "provider_context_length");
  CHECK(Reason(400, "exceed_context_size_error", "the request exceeds the available context size") ==
        "provider_context_length");
  CHECK(Reason(413, "", "Prompt is too long") == "provider_context_length");
  CHECK(Reason(0, "context_length_exceeded") == "provider_context_length");
  CHECK(Reason(500, "", "context length") == "provider_error retryable");
}

TEST_CASE("Provider error: inside a stream the provider's own code decides", "[openai]") {
  CHECK(Reason(0, "429") == "provider_rate_limited retryable");
  CHECK(Reason(0, "rate_limit_exceeded") == "provider_rate_limited retryable");
  CHECK(Reason(0, "Overloaded") == "provider_overloaded retryable");
  CHECK(Reason(0, "invalid_api_key") == "provider_auth");
  CHECK(Reason(0, "server_error") == "provider_error retryable");
  CHECK(Reason(0, "invalid_request_error") == "provider_bad_request");
  CHECK(Reason(0) == "provider_error retryable");
}

TEST_CASE("Provider error: the provider's message is cut between characters and kept on one line", "[openai]") {
  std::string words = "a\nb\x01";
  for (int i = 0; i < 400; ++i) words += "\xC3\xA9";
  const std::string message = MakeProviderError({500, "", words}, kKey).message;
  CHECK(IsUtf8(message));
  CHECK(message.starts_with("The model provider failed (HTTP 500): a b "));
  CHECK(message.ends_with("\xC3\xA9"));
  CHECK(message.size() < 700);
  CHECK(IsUtf8(MakeProviderError({500, "", "\xff\xfe"}, kKey).message));
}

TEST_CASE("Provider error: the key is never repeated, whole, masked or cut", "[openai]") {
  for (const std::string& words :
       {"Incorrect API key provided: " + std::string(kKey),
        std::string("Incorrect API key provided: sk-proj-********1234."), "key='" + std::string(kKey) + "'",
        "Bearer " + std::string(kKey) + ",x", std::string(290, 'x') + " " + std::string(kKey),
        std::string(293, 'x') + std::string(kKey)}) {
    const std::string message = MakeProviderError({401, "", words}, kKey).message;
    INFO(message);
    CHECK(message.find("sk-proj") == std::string::npos);
    CHECK(message.find("1234") == std::string::npos);
  }
  CHECK(RedactKey("a bc", "") == "a bc");
  CHECK(RedactKey("token k1-local here", "k1-local") == "token [redacted] here");
  // A short key would match unrelated words.
  CHECK(RedactKey("the engine", "e") == "the engine");
  CHECK(RedactKey("a local server", "local") == "a local server");
}

TEST_CASE("Provider error: a transport's failure is translated into the client's terms", "[openai]") {
  const auto mapped = [](ErrorCode code, std::string reason, bool head_seen) {
    Error error = MakeError(code, "words");
    error.reason = std::move(reason);
    error = FromTransportError(error, head_seen);
    return std::pair(error.code, error.reason);
  };
  using Pair = std::pair<ErrorCode, std::string>;
  CHECK(mapped(ErrorCode::kUnavailable, "connection_failed", false) ==
        Pair(ErrorCode::kUnavailable, "provider_unreachable"));
  CHECK(mapped(ErrorCode::kUnavailable, "connection_lost", true) == Pair(ErrorCode::kProvider, "provider_protocol"));
  CHECK(mapped(ErrorCode::kDeadlineExceeded, "idle_timeout", true) ==
        Pair(ErrorCode::kDeadlineExceeded, "provider_timeout"));
  CHECK(mapped(ErrorCode::kInvalidArgument, "invalid_request", false) ==
        Pair(ErrorCode::kUnavailable, "provider_unreachable"));
  CHECK(mapped(ErrorCode::kCancelled, "cancelled", true) == Pair(ErrorCode::kCancelled, "cancelled"));
}

}  // namespace
}  // namespace reprise::provider_error_test
