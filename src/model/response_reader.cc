#include "model/response_reader.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/retry_after.h"
#include "base/utf8.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxErrorBytes = 64 * 1024;
constexpr std::size_t kMaxDocumentBytes = 2 * kMaxResponseBytes;  // with what stands around the answer

std::string_view HeaderOr(const HttpHeaders& headers, std::string_view name, std::string_view fallback) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return fallback;
}

std::string StringMember(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  return found->is_number_integer() ? found->dump() : std::string();
}

std::string WordsIn(const Json& value);

// The words of one complaint about a request: where, and what.
std::string WordsOfItem(const Json& item) {
  std::string where;
  if (const Json& location = MemberOf(item, "loc"); location.is_array()) {
    for (const Json& step : location) {
      where += (where.empty() ? "" : ".") + (step.is_string() ? step.get<std::string>() : DumpJson(step));
    }
  }
  for (const char* key : {"msg", "message", "detail", "error"}) {
    const Json& member = MemberOf(item, key);
    if (std::string words = WordsIn(member); !words.empty()) return where.empty() ? words : where + ": " + words;
  }
  return where;
}

// Of a text, or of what some send in its place: {"detail":[{"loc":["body","messages"],"msg":"..."}]} (FastAPI).
std::string WordsIn(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) return WordsOfItem(value);
  std::string words;
  if (!value.is_array()) return words;
  for (const Json& item : value) {
    if (std::string more = WordsIn(item); !more.empty()) words += (words.empty() ? "" : "; ") + more;
  }
  return words;
}

}  // namespace

ProviderFault ReadErrorBody(int status, std::string_view body) {
  ProviderFault fault{.status = status};
  const auto json = ParseJson(ToValidUtf8(body), kMaxJsonDepth, DuplicateMembers::kLastWins);
  if (!json || !json->is_object()) return fault;
  const auto error = json->find("error");
  const Json& described = error != json->end() && error->is_object() ? *error : *json;
  fault.code = StringMember(described, "code");
  if (fault.code.empty()) fault.code = StringMember(described, "type");
  for (const char* key : {"message", "error", "detail"}) {
    if (fault.message.empty()) fault.message = WordsIn(MemberOf(described, key));
  }
  const std::string parameter = TextMember(described, "param");
  if (!parameter.empty() && fault.message.find(parameter) == std::string::npos) {
    fault.message += (fault.message.empty() ? "" : " ") + ("(" + parameter + ")");
  }
  return fault;
}

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
  const std::string_view type = HeaderOr(headers, "content-type", "text/event-stream");
  if (type.starts_with("text/event-stream") || type.starts_with("text/plain") ||
      type.starts_with("application/octet-stream")) {
    kind_ = Kind::kEvents;
  } else if (type.starts_with("application/json")) {
    kind_ = Kind::kDocument;
  } else {
    error_ = ProtocolError("The model provider answered with a page instead of an event stream");
  }
}

bool ResponseReader::OnData(std::string_view bytes) {
  if (error_) return false;
  switch (kind_) {
    case Kind::kEvents:
      return TakeEvents(bytes);
    case Kind::kDocument:
      return Append(bytes, kMaxDocumentBytes);
    case Kind::kError:
      return Append(bytes, kMaxErrorBytes);
  }
  return false;
}

// The transport's own clock starts again with every byte, pings included; this one only with what says something. Only
// now everything that the socket held has been looked at.
bool ResponseReader::OnBatchEnd() {
  response_->EndBatch();
  const auto now = Clock::now();
  const bool progressed = response_->TakeProgress();
  if (std::exchange(any_body_, false) || progressed) {
    last_progress_ = now;
  } else if (now - last_progress_ >= idle_timeout_ && !error_) {
    if (response_->complete()) return false;  // what may follow it is not worth the wait
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
  // What comes after the end of the answer (the usage, [DONE]) may be missing.
  if (!transported && !response_->complete()) return Fail(FromTransportError(transported.error(), status_ != 0));
  if (kind_ == Kind::kDocument && transported) response_->TakeDocument(body_);
  if (kind_ == Kind::kEvents) TakeUnfinishedEvent();
  response_->EndBatch();
  return response_->Take();
}

bool ResponseReader::TakeEvents(std::string_view bytes) {
  parser_.Feed(bytes);
  while (const auto event = parser_.Next()) {
    if (!response_->TakeEvent(event->data)) return false;
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

// An event without its blank line at the end is taken if it is whole, which only its JSON can tell.
void ResponseReader::TakeUnfinishedEvent() {
  if (response_->complete()) return;
  const auto event = parser_.Finish();
  const auto is_whole = [](std::string_view data) {
    return data == "[DONE]" || ParseJson(ToValidUtf8(data), kMaxJsonDepth, DuplicateMembers::kLastWins);
  };
  if (event && is_whole(event->data)) response_->TakeEvent(event->data);
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
                     response.error().retry_after = std::chrono::milliseconds(1);
                   }
                   done(std::move(response));
                 });
}

}  // namespace reprise
