#include "client/server_client.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>

#include "base/text.h"
#include "base/try.h"
#include "model/event_json.h"

namespace reprise {
namespace {

constexpr std::string_view kTextDelta = "text_delta";
constexpr int kMaxAnswerDepth = kMaxJsonDepth + 16;

Result<Json> ReadAnswer(int status, const std::string& body) {
  auto json = ParseJson(body, kMaxAnswerDepth);
  if (status < 400 && json && json->is_object()) return json;
  if (status >= 400 && json && json->contains("error") && (*json)["error"].is_object()) {
    const auto text = [&error = (*json)["error"]](const char* name) {
      const auto member = error.find(name);
      return member != error.end() && member->is_string() ? member->get<std::string>() : std::string("refused");
    };
    Error error{.code = ErrorCode::kUnavailable, .reason = text("code"), .message = text("message")};
    const auto details = (*json)["error"].find("details");
    if (details != (*json)["error"].end()) error.details_json = DumpJson(*details);
    return Fail(std::move(error));
  }
  return Fail(ErrorCode::kUnavailable, "this is not a Reprise server (status " + std::to_string(status) + ")");
}

class WholeAnswer final : public HttpResponseHandler {
 public:
  void OnHead(int status_code, const HttpHeaders&) override { status = status_code; }
  bool OnData(std::string_view bytes) override { return body.append(bytes), true; }
  int status = 0;
  std::string body;
};

}  // namespace

const Json& ListedIn(const Json& answer, std::string_view name) {
  static const Json none = Json::array();
  const Json& list = MemberOf(answer, name);
  return list.is_array() ? list : none;
}

ArrivingAnswer::ArrivingAnswer() : arrived_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void ArrivingAnswer::OnHead(int status, const HttpHeaders& headers) {
  {
    const MutexLock lock(mutex_);
    status_ = status;
    headers_ = headers;
  }
  Tell();
}

bool ArrivingAnswer::OnData(std::string_view bytes) {
  bool is_first = false;
  {
    const MutexLock lock(mutex_);
    is_first = bytes_.empty();
    bytes_.append(bytes);
  }
  if (is_first) Tell();  // otherwise the reader was told and has not read yet
  return true;
}

void ArrivingAnswer::Done(Result<void> ended) {
  {
    const MutexLock lock(mutex_);
    ended_ = std::move(ended);
  }
  Tell();
}

ArrivingAnswer::Taken ArrivingAnswer::Take(std::string& bytes) {
  std::uint64_t count;
  [[maybe_unused]] const ssize_t size = ::read(arrived_.get(), &count, sizeof count);  // fails if nothing has arrived
  bytes.clear();
  const MutexLock lock(mutex_);
  bytes_.swap(bytes);
  return {status_, headers_, ended_};
}

void ArrivingAnswer::Tell() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = ::write(arrived_.get(), &one, sizeof one);
}

ArrivingEvents::ArrivingEvents(std::shared_ptr<ArrivingAnswer> arriving) : arriving_(std::move(arriving)) {}
ArrivingEvents::~ArrivingEvents() { stop_.request_stop(); }

int ArrivingEvents::descriptor() const { return arriving_->descriptor(); }

void ArrivingEvents::TakeText(std::string_view data) {
  const EventJson json(data);
  if (!json.valid()) return;
  const std::string_view text = StringOr(json.root()["content"], {});
  if (events_.empty() || events_.back().name != kTextDelta) {
    events_.push_back({std::string(kTextDelta), Json{{"type", "TEXT_DELTA"}, {"content", ""}}});
  }
  events_.back().data["content"].get_ref<std::string&>() += text;
}

void ArrivingEvents::Receive() {
  const auto [status, headers, ended] = arriving_->Take(bytes_);
  if (status >= 400) {
    refusal_ += bytes_;
  } else {
    parser_.Feed(bytes_);
    while (const auto event = parser_.Next()) {
      if (merges_text_ && event->type == kTextDelta) {
        TakeText(event->data);
        continue;
      }
      auto data = ParseJson(event->data, kMaxAnswerDepth);
      if (data) events_.push_back({std::string(event->type), *std::move(data)});
    }
  }
  if (!ended || ended_) return;
  ended_ = *ended;
  if (*ended && status >= 400) ended_ = ReadAnswer(status, refusal_).map([](const Json&) {});
}

std::optional<ArrivingEvents::Event> ArrivingEvents::Next() {
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

HttpRequest ServerClient::RequestFor(const std::string& method, const std::string& path, const Json& body) const {
  HttpRequest request;
  request.method = method;
  request.url = url_ + path;
  if (!body.is_null()) {
    request.headers.emplace_back("Content-Type", "application/json");
    request.body = DumpJson(body);
  }
  if (!token_.empty()) request.headers.emplace_back("Authorization", "Bearer " + token_);
  if (!settings_.empty()) request.headers.emplace_back("Reprise-Settings", settings_);
  return request;
}

Result<Json> ServerClient::Perform(HttpRequest request, std::stop_token stop) {
  WholeAnswer answer;
  TRY(transport_.Perform(std::move(request), answer, std::move(stop)));
  return ReadAnswer(answer.status, answer.body);
}

Result<Json> ServerClient::Call(const std::string& method, const std::string& path, const Json& body) {
  HttpRequest request = RequestFor(method, path, body);
  request.headers.emplace_back("Accept", "application/json");
  return Perform(std::move(request));
}

Result<std::string> ServerClient::Text(const std::string& path) {
  WholeAnswer answer;
  TRY(transport_.Perform(RequestFor("GET", path, Json(nullptr)), answer, {}));
  if (answer.status >= 400) return Fail(ReadAnswer(answer.status, answer.body).error());
  return std::move(answer.body);
}

Result<Json> ServerClient::Upload(const std::string& path, const std::string& name, std::string bytes) {
  HttpRequest request = RequestFor("POST", path + "?name=" + PercentEncoded(name), Json(nullptr));
  request.headers.emplace_back("Content-Type", "application/octet-stream");
  request.body = std::move(bytes);
  return Perform(std::move(request));
}

Result<Json> ServerClient::CallAndWait(const std::string& path, const Json& body, std::stop_token stop) {
  HttpRequest request = RequestFor("POST", path, body);
  request.idle_timeout = std::chrono::hours(1);
  return Perform(std::move(request), std::move(stop));
}

std::unique_ptr<ArrivingEvents> ServerClient::Stream(const std::string& method, const std::string& path,
                                                     const Json& body, const std::string& idempotency_key) {
  const auto arriving = std::make_shared<ArrivingAnswer>();
  HttpRequest request = RequestFor(method, path, body);
  request.headers.emplace_back("Accept", "text/event-stream");
  if (!idempotency_key.empty()) request.headers.emplace_back("Idempotency-Key", idempotency_key);
  std::unique_ptr<ArrivingEvents> stream(new ArrivingEvents(arriving));
  transport_.Send(std::move(request), *arriving, stream->stop_.get_token(),
                  [arriving](Result<void> ended) { arriving->Done(std::move(ended)); });
  return stream;
}

std::unique_ptr<SentMessage> ServerClient::Post(const std::string& path, const Json& body, HttpHeaders headers) {
  auto sent = std::make_unique<SentMessage>();
  HttpRequest request = RequestFor("POST", path, body);
  request.headers.insert(request.headers.end(), headers.begin(), headers.end());
  transport_.Send(std::move(request), *sent->answer_, sent->stop_.get_token(),
                  [answer = sent->answer_](Result<void> ended) { answer->Done(std::move(ended)); });
  return sent;
}

}  // namespace reprise
