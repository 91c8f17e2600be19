#include "cli/server_client.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/sse_parser.h"
#include "base/unique_fd.h"

namespace reprise {
namespace {

constexpr int kMaxDepth = kMaxJsonDepth + 16;

Result<Json> ReadAnswer(int status, const std::string& body) {
  auto json = ParseJson(body, kMaxDepth);
  if (status < 400 && json) return json;
  if (status >= 400 && json && json->contains("error") && (*json)["error"].is_object()) {
    const auto text = [&error = (*json)["error"]](const char* name) {
      const auto member = error.find(name);
      return member != error.end() && member->is_string() ? member->get<std::string>() : std::string("refused");
    };
    return Fail(Error{.code = ErrorCode::kUnavailable, .reason = text("code"), .message = text("message")});
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

// What the transport's thread receives, for the thread that reads it.
class ArrivingStream final : public HttpResponseHandler {
 public:
  ArrivingStream() : arrived_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void OnHead(int status, const HttpHeaders&) override {
    const std::lock_guard lock(mutex_);
    status_ = status;
  }
  bool OnData(std::string_view bytes) override {
    {
      const std::lock_guard lock(mutex_);
      bytes_.append(bytes);
    }
    return Tell(), true;
  }
  void Done(Result<void> ended) {
    {
      const std::lock_guard lock(mutex_);
      ended_ = std::move(ended);
    }
    Tell();
  }

  struct Taken {
    int status;
    std::string bytes;
    std::optional<Result<void>> ended;
  };
  Taken Take() {
    std::uint64_t count;
    [[maybe_unused]] const ssize_t size = ::read(arrived_.get(), &count, sizeof count);  // none: nothing has come
    const std::lock_guard lock(mutex_);
    return {status_, std::exchange(bytes_, {}), ended_};
  }
  int descriptor() const { return arrived_.get(); }

 private:
  void Tell() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t size = ::write(arrived_.get(), &one, sizeof one);
  }

  const UniqueFd arrived_;
  std::mutex mutex_;
  int status_ = 0;                     // guarded by mutex_
  std::string bytes_;                  // guarded by mutex_
  std::optional<Result<void>> ended_;  // guarded by mutex_
};

}  // namespace

HttpRequest ServerClient::RequestFor(const std::string& method, const std::string& path, const Json& body) const {
  HttpRequest request;
  request.method = method;
  request.url = url_ + path;
  if (!body.is_null()) {
    request.headers.emplace_back("Content-Type", "application/json");
    request.body = DumpJson(body);
  }
  if (!token_.empty()) request.headers.emplace_back("Authorization", "Bearer " + token_);
  return request;
}

Result<Json> ServerClient::Call(const std::string& method, const std::string& path) {
  return Call(method, path, Json(nullptr));
}

Result<Json> ServerClient::Call(const std::string& method, const std::string& path, const Json& body) {
  WholeAnswer answer;
  auto done = transport_.Perform(RequestFor(method, path, body), answer, {});
  if (!done) return Fail(std::move(done.error()));
  return ReadAnswer(answer.status, answer.body);
}

Result<void> ServerClient::Stream(const std::string& path, const Json& body, TerminalInput& input,
                                  const OnEvent& on_event, const std::function<void()>& interrupted) {
  const auto stream = std::make_shared<ArrivingStream>();
  HttpRequest request = RequestFor("POST", path, body);
  request.headers.emplace_back("Accept", "text/event-stream");
  std::stop_source stop;
  transport_.Send(std::move(request), *stream, stop.get_token(),
                  [stream](Result<void> ended) { stream->Done(std::move(ended)); });
  SseParser parser;
  std::string refusal;
  for (;;) {
    if (input.WaitForOrInterrupt(stream->descriptor())) interrupted();
    const auto [status, bytes, ended] = stream->Take();
    if (status >= 400) {
      refusal += bytes;
    } else {
      parser.Feed(bytes);
      while (const auto event = parser.Next()) {
        const std::string name(event->type);
        const auto data = ParseJson(event->data, kMaxDepth);
        if (data) on_event(name, *data);
      }
    }
    if (!ended) continue;
    if (!*ended) return *ended;
    if (status >= 400) return ReadAnswer(status, refusal).map([](const Json&) {});
    return {};
  }
}

}  // namespace reprise
