#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/sse_parser.h"
#include "model/provider_error.h"
#include "model/provider_response.h"
#include "reprise/transport.h"

namespace reprise {

// The forms of error bodies in use: {"error":{"message","code","type"}}, {"error":"..."}, {"message":"..."} and
// {"detail":"..."}. Anything else (a proxy's HTML page) is not quoted.
ProviderFault ReadErrorBody(int status, std::string_view body);

// Reads the HTTP response to one model request, whichever of three it turns out to be: an event stream, one JSON
// document, or an error. Comments and pings of the transport are no events: a provider that sends only those for
// `idle_timeout` is given up when the first of them after it arrives.
class ResponseReader : public HttpResponseHandler {
 public:
  // `api_key` must outlive this.
  ResponseReader(std::unique_ptr<ProviderResponse> response, std::string_view api_key,
                 std::chrono::milliseconds idle_timeout);

  void OnHead(int status, const HttpHeaders& headers) override;
  bool OnData(std::string_view bytes) override;
  void OnBatchEnd() override;

  // The answer, when the transport has ended with `transported`.
  Result<ModelResponse> Take(const Result<void>& transported);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Kind { kEvents, kDocument, kError };

  bool TakeEvents(std::string_view bytes);
  bool WithinIdleLimit(bool any_event);
  bool Append(std::string_view bytes, std::size_t limit);
  void TakeUnfinishedEvent();

  const std::unique_ptr<ProviderResponse> response_;
  const std::string_view api_key_;
  const std::chrono::milliseconds idle_timeout_;
  SseParser parser_;
  Kind kind_ = Kind::kError;
  int status_ = 0;
  std::optional<std::chrono::milliseconds> retry_after_;
  std::string body_;
  Clock::time_point last_event_ = Clock::now();
  std::optional<Error> error_;
};

}  // namespace reprise
