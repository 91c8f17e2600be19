#include "model/openai_client.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "model/openai_request.h"
#include "model/openai_response.h"
#include "model/provider_error.h"
#include "model/sse_parser.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxErrorBytes = 64 * 1024;
constexpr std::size_t kMaxDocumentBytes = OpenAiResponse::kMaxTextBytes;

std::string CompletionsUrl(std::string_view base_url) {
  while (base_url.ends_with('/')) base_url.remove_suffix(1);
  return std::string(base_url) + "/chat/completions";
}

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

// The forms of error bodies in use: {"error":{"message","code","type"}}, {"error":"..."}, {"message":"..."} and
// {"detail":"..."}. Anything else (a proxy's HTML page) is not quoted.
ProviderFault ReadErrorBody(int status, std::string_view body) {
  ProviderFault fault{.status = status};
  const auto json = ParseJson(ToValidUtf8(body));
  if (!json || !json->is_object()) return fault;
  const auto error = json->find("error");
  const Json& described = error != json->end() && error->is_object() ? *error : *json;
  fault.code = StringMember(described, "code");
  if (fault.code.empty()) fault.code = StringMember(described, "type");
  for (const char* key : {"message", "error", "detail"}) {
    if (fault.message.empty()) fault.message = StringMember(described, key);
  }
  return fault;
}

// Reads one HTTP response, whichever of three it turns out to be: an event stream, one JSON document, or an error.
class ResponseReader : public HttpResponseHandler {
 public:
  ResponseReader(ModelStream& stream, const OpenAiOptions& options)
      : options_(options), response_(stream, options.api_key), last_event_(Clock::now()) {}

  void OnHead(int status, const HttpHeaders& headers) override {
    status_ = status;
    last_event_ = Clock::now();
    if (status < 200 || status >= 300) {
      kind_ = Kind::kError;
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

  bool OnData(std::string_view bytes) override {
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

  void OnBatchEnd() override { response_.EndBatch(); }

  Result<ModelResponse> Take(const Result<void>& transported) {
    if (!transported && transported.error().code == ErrorCode::kCancelled) return Fail(transported.error());
    if (error_) return Fail(*error_);
    if (kind_ == Kind::kError && status_ != 0) {
      return Fail(MakeProviderError(ReadErrorBody(status_, body_), options_.api_key));
    }
    if (response_.failed()) return response_.Take();
    // What comes after the end of the answer (the usage, [DONE]) may be missing.
    if (!transported && !response_.complete()) return Fail(FromTransportError(transported.error(), status_ != 0));
    if (kind_ == Kind::kDocument && transported) response_.TakeDocument(body_);
    if (kind_ == Kind::kEvents) TakeUnfinishedEvent();
    response_.EndBatch();
    return response_.Take();
  }

 private:
  enum class Kind { kEvents, kDocument, kError };

  bool TakeEvents(std::string_view bytes) {
    bool any = false;
    parser_.Feed(bytes);
    while (const auto event = parser_.Next()) {
      any = true;
      if (!response_.TakeEvent(event->data)) return false;
    }
    if (parser_.overflowed()) {
      error_ = ProtocolError("The model provider sent an event that is too long");
      return false;
    }
    return WithinIdleLimit(any);
  }

  // The transport's own clock starts again with every byte, pings included; this one only with events.
  bool WithinIdleLimit(bool any_event) {
    const auto now = Clock::now();
    if (any_event) {
      last_event_ = now;
    } else if (now - last_event_ >= options_.idle_timeout) {
      error_ = FromTransportError(MakeError(ErrorCode::kDeadlineExceeded, {}), /*head_seen=*/true);
      return false;
    }
    return true;
  }

  bool Append(std::string_view bytes, std::size_t limit) {
    if (kind_ == Kind::kDocument && body_.size() + bytes.size() > limit) {
      error_ = ProtocolError("The model provider's answer is too long");
      return false;
    }
    body_ += bytes.substr(0, limit - body_.size());
    return body_.size() < limit;
  }

  // An event without its blank line at the end is taken if it is whole, which only its JSON can tell.
  void TakeUnfinishedEvent() {
    if (response_.complete()) return;
    const auto event = parser_.Finish();
    if (event && (event->data == "[DONE]" || ParseJson(ToValidUtf8(event->data)))) response_.TakeEvent(event->data);
  }

  const OpenAiOptions& options_;
  OpenAiResponse response_;
  SseParser parser_;
  Kind kind_ = Kind::kError;
  int status_ = 0;
  std::string body_;
  Clock::time_point last_event_;
  std::optional<Error> error_;
};

}  // namespace

OpenAiClient::OpenAiClient(Transport& transport, OpenAiOptions options)
    : transport_(transport), options_(std::move(options)), url_(CompletionsUrl(options_.base_url)) {}

HttpRequest OpenAiClient::MakeHttpRequest(const ModelRequest& request) const {
  HttpRequest http;
  http.method = "POST";
  http.url = url_;
  http.headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
  if (!options_.api_key.empty()) http.headers.emplace_back("Authorization", "Bearer " + options_.api_key);
  http.body = BuildChatCompletionRequest(request);
  http.connect_timeout = options_.connect_timeout;
  http.idle_timeout = options_.idle_timeout;
  return http;
}

void OpenAiClient::Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) {
  const auto reader = std::make_shared<ResponseReader>(stream, options_);
  transport_.Send(
      MakeHttpRequest(request), *reader, std::move(stop),
      [reader, done = std::move(done)](const Result<void>& transported) { done(reader->Take(transported)); });
}

}  // namespace reprise
