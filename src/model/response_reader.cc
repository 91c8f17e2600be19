#include "model/response_reader.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/transport.h"
#include "base/utf8.h"
#include "model/failure_words.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxErrorBytes = 64 * 1024;
constexpr std::size_t kMaxDocumentBytes = 2 * kMaxResponseBytes;  // includes the JSON around the answer

constexpr std::string_view kBlankBytes = " \t\r\n";

}  // namespace

ResponseReader::ResponseReader(std::unique_ptr<ProviderResponse> response, std::string_view api_key,
                               std::chrono::milliseconds idle_timeout)
    : response_(std::move(response)), api_key_(api_key), idle_timeout_(idle_timeout) {}

void ResponseReader::OnHead(int status, const HttpHeaders& headers) {
  status_ = status;
  last_progress_ = Clock::now();
  if (status < 200 || status >= 300) {
    kind_ = Kind::kError;
    retry_after_ = RetryAfter(headers, std::chrono::system_clock::now());
    return;
  }
  kind_ = Kind::kUnknown;
}

// Content types are often wrong, so the data decides: JSON begins with a bracket, a page with '<', and an event stream
// with neither. Waits for more while only whitespace and a byte order mark have arrived.
void ResponseReader::FindKind(std::string_view bytes) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  for (const char c : bytes) {
    if (kBlankBytes.find(c) != std::string_view::npos || kByteOrderMark.find(c) != std::string_view::npos) continue;
    if (c == '<') error_ = ProtocolError("The model provider answered with a page instead of an event stream");
    kind_ = c == '{' || c == '[' ? Kind::kDocument : Kind::kEvents;
    return;
  }
}

bool ResponseReader::OnData(std::string_view bytes) {
  if (error_) return false;
  switch (kind_) {
    case Kind::kUnknown: {
      body_ += bytes;
      FindKind(body_);
      if (kind_ == Kind::kUnknown && body_.size() > kMaxErrorBytes) {
        error_ = ProtocolError("The model provider sent nothing but blanks");
      }
      if (kind_ == Kind::kUnknown || error_) return !error_;
      const std::string begin = std::exchange(body_, {});
      return OnData(begin);
    }
    case Kind::kEvents:
      return TakeEvents(bytes);
    case Kind::kDocument:
      return Append(bytes, kMaxDocumentBytes);
    case Kind::kError:
      return Append(bytes, kMaxErrorBytes);
  }
  return false;
}

// The transport's own timer restarts with every byte, pings included; this one only with real progress. It is checked
// here, after all data from the socket has been processed.
bool ResponseReader::OnBatchEnd() {
  response_->EndBatch();
  const auto now = Clock::now();
  const bool progressed = response_->TakeProgress();
  if (std::exchange(any_body_, false) || progressed) {
    last_progress_ = now;
  } else if (now - last_progress_ >= idle_timeout_ && !error_) {
    if (response_->complete()) return false;  // later data is not worth the wait
    error_ = FromTransportError(MakeError(ErrorCode::kDeadlineExceeded, {}), /*head_seen=*/true);
  }
  return !error_;
}

Result<ModelResponse> ResponseReader::Take(const Result<void>& transported) {
  if (!transported && transported.error().code == ErrorCode::kCancelled) return Fail(transported.error());
  if (error_) return Fail(*error_);
  if (kind_ == Kind::kError && status_ != 0) {
    Error error = MakeProviderError(ReadErrorBody(status_, body_), api_key_);
    error.retry_after = retry_after_;
    return Fail(std::move(error));
  }
  if (response_->failed()) return response_->Take();
  // The events after the answer's end (the usage, [DONE]) are optional.
  if (!transported && !response_->complete()) return Fail(FromTransportError(transported.error(), status_ != 0));
  if (kind_ == Kind::kDocument && transported) response_->TakeDocument(body_);
  if (kind_ == Kind::kEvents) TakeUnfinishedEvent();
  response_->EndBatch();
  return response_->Take();
}

bool ResponseReader::TakeEvents(std::string_view bytes) {
  parser_.Feed(bytes);
  while (const auto event = parser_.Next()) {
    if (!response_->TakeEvent(event->data, event->type)) return false;
  }
  if (parser_.overflowed()) {
    error_ = TooLargeError();
    return false;
  }
  return true;
}

bool ResponseReader::Append(std::string_view bytes, std::size_t limit) {
  if (kind_ == Kind::kDocument && body_.size() + bytes.size() > limit) {
    error_ = TooLargeError();
    return false;
  }
  any_body_ = any_body_ || bytes.find_first_not_of(" \t\r\n") != std::string_view::npos;
  body_ += bytes.substr(0, limit - body_.size());
  return body_.size() < limit;
}

// Accepts an event without its final blank line if its JSON is complete.
void ResponseReader::TakeUnfinishedEvent() {
  if (response_->complete()) return;
  const auto event = parser_.Finish();
  const auto is_whole = [](std::string_view data) {
    return data == "[DONE]" || ParseJson(ToValidUtf8(data), kMaxJsonDepth, DuplicateMembers::kLastWins);
  };
  if (event && is_whole(event->data)) response_->TakeEvent(event->data, event->type);
}

void SendModelRequest(Transport& transport, HttpRequest http, std::shared_ptr<ResponseReader> reader,
                      std::stop_token stop, std::function<bool(const Error&)> learns, ModelClient::Done done) {
  ResponseReader& handler = *reader;
  transport.Send(std::move(http), handler, std::move(stop),
                 [reader = std::move(reader), learns = std::move(learns),
                  done = std::move(done)](const Result<void>& transported) {
                   auto response = reader->Take(transported);
                   if (!response && learns(response.error())) {
                     response.error().retryable = true;
                     response.error().retry_after = kAskAgainAtOnce;
                   }
                   done(std::move(response));
                 });
}

}  // namespace reprise
