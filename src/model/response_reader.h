#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/sse_parser.h"
#include "model/provider_error.h"
#include "model/provider_response.h"
#include "reprise/model_client.h"
#include "reprise/transport.h"

namespace reprise {

// Reads the HTTP response to a model request and detects its kind: an event stream, JSON (a document, or one per line),
// or an error. The data decides, not the content type. Comments, pings, empty deltas and whitespace are not progress:
// if a provider sends only those for `idle_timeout`, the batch with the first of them after the limit ends the request.
class ResponseReader : public HttpResponseHandler {
 public:
  // `api_key` must outlive this.
  ResponseReader(std::unique_ptr<ProviderResponse> response, std::string_view api_key,
                 std::chrono::milliseconds idle_timeout);

  void OnHead(int status, const HttpHeaders& headers) override;
  bool OnData(std::string_view bytes) override;
  bool OnBatchEnd() override;

  // The answer, after the transport has ended with `transported`.
  Result<ModelResponse> Take(const Result<void>& transported);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Kind { kUnknown, kEvents, kDocument, kError };

  void FindKind(std::string_view bytes);
  bool TakeEvents(std::string_view bytes);
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
  bool any_body_ = false;  // of a document or an error, since the last batch
  Clock::time_point last_progress_ = Clock::now();
  std::optional<Error> error_;
};

// Sends a model request and passes on the answer that `reader` builds; its `api_key` must outlive the request. On
// failure calls `learns` on the transport's thread: true if later requests of this kind omit the rejected part. Then
// the error is retryable at once.
void SendModelRequest(Transport& transport, HttpRequest http, std::shared_ptr<ResponseReader> reader,
                      std::stop_token stop, std::function<bool(const Error&)> learns, ModelClient::Done done);

}  // namespace reprise
