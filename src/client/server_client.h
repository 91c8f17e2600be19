#pragma once

#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/mutex.h"
#include "base/sse_parser.h"
#include "base/system.h"
#include "net/curl_transport.h"
#include "reprise/result.h"
#include "reprise/transport.h"

namespace reprise {

// An answer that the transport's thread receives, for one other thread that takes it piece by piece.
class ArrivingAnswer final : public HttpResponseHandler {
 public:
  ArrivingAnswer();

  // Readable when Take may find something.
  int descriptor() const { return arrived_.get(); }

  struct Taken {
    int status = 0;  // 0: the head has not come
    HttpHeaders headers;
    std::optional<Result<void>> ended;  // nullopt: it goes on
  };
  // Does not wait. `bytes` becomes what has come since; its memory is used for what comes next.
  Taken Take(std::string& bytes);

  // --- the transport's thread
  void OnHead(int status, const HttpHeaders& headers) override;
  bool OnData(std::string_view bytes) override;
  void Done(Result<void> ended);

 private:
  void Tell();

  const UniqueFd arrived_;
  Mutex mutex_;
  int status_ GUARDED_BY(mutex_) = 0;
  HttpHeaders headers_ GUARDED_BY(mutex_);
  std::string bytes_ GUARDED_BY(mutex_);
  std::optional<Result<void>> ended_ GUARDED_BY(mutex_);
};

// The events of an answer that is being received. For one thread; gives the request up when it is destroyed.
class ArrivingEvents {
 public:
  struct Event {
    std::string name;
    Json data;
  };
  ArrivingEvents(const ArrivingEvents&) = delete;
  ArrivingEvents& operator=(const ArrivingEvents&) = delete;
  ~ArrivingEvents();

  // From now on pieces of a text that have come together are one event, without a number: whoever draws them has less
  // to do.
  void MergeText() { merges_text_ = true; }

  // Readable when Receive may find something.
  int descriptor() const;
  // Takes what has come; does not wait.
  void Receive();
  // In their order; nullopt if no more have been received.
  std::optional<Event> Next();
  // Those that Next will return.
  const std::deque<Event>& received() const { return events_; }
  // How it ended; nullopt while it goes on. Failures as ServerClient::Call's, and kUnavailable if it broke off.
  const std::optional<Result<void>>& ended() const { return ended_; }

 private:
  friend class ServerClient;
  explicit ArrivingEvents(std::shared_ptr<ArrivingAnswer> arriving);

  const std::shared_ptr<ArrivingAnswer> arriving_;
  std::stop_source stop_;
  void TakeText(std::string_view data);

  std::string bytes_;  // taken last
  SseParser parser_;
  bool merges_text_ = false;
  std::deque<Event> events_;
  std::string refusal_;
  std::optional<Result<void>> ended_;
};

// A message on its way, and its answer as it comes. Gives it up when it is destroyed.
class SentMessage {
 public:
  SentMessage() = default;
  SentMessage(const SentMessage&) = delete;
  SentMessage& operator=(const SentMessage&) = delete;
  ~SentMessage() { stop_.request_stop(); }

  ArrivingAnswer& answer() { return *answer_; }

 private:
  friend class ServerClient;
  const std::shared_ptr<ArrivingAnswer> answer_ = std::make_shared<ArrivingAnswer>();
  std::stop_source stop_;
};

// Talks to a running server by its HTTP interface. For one thread.
class ServerClient {
 public:
  // `url` without a path; `token` may be empty. `settings`: a digest of those that turns must run with; a server that
  // has others refuses every request (reason "other_settings"). Empty: as the server likes.
  ServerClient(std::string url, std::string token, std::string settings = {})
      : url_(std::move(url)), token_(std::move(token)), settings_(std::move(settings)) {}

  const std::string& url() const { return url_; }
  const std::string& settings() const { return settings_; }
  // The server is at another place from now on.
  void SetPlace(std::string url, std::string settings) {
    url_ = std::move(url);
    settings_ = std::move(settings);
  }

  // The answer's JSON. An answer of 400 and above is an Error with the server's reason and message.
  Result<Json> Call(const std::string& method, const std::string& path, const Json& body = Json(nullptr));

  // Of a route whose answer is no JSON.
  Result<std::string> Text(const std::string& path);

  // Gives a file to a chat (POST .../files); the answer's JSON.
  Result<Json> Upload(const std::string& path, const std::string& name, std::string bytes);

  // POST with a body that the server may take long to work on, silently. kCancelled if `stop` is requested.
  Result<Json> CallAndWait(const std::string& path, const Json& body, std::stop_token stop);

  // Sends, and does not wait for the answer, which is a stream of events. The client must outlive it.
  // With an idempotency key (if it is not empty) the same request can be sent again: it begins nothing twice.
  std::unique_ptr<ArrivingEvents> Stream(const std::string& method, const std::string& path, const Json& body,
                                         const std::string& idempotency_key = {});

  // Sends a message with these headers, and does not wait. The client must outlive it.
  std::unique_ptr<SentMessage> Post(const std::string& path, const Json& body, HttpHeaders headers);

 private:
  HttpRequest RequestFor(const std::string& method, const std::string& path, const Json& body) const;
  Result<Json> Perform(HttpRequest request, std::stop_token stop = {});

  std::string url_;
  const std::string token_;
  std::string settings_;
  CurlTransport transport_{CurlTransport::kLargeReads};
};

}  // namespace reprise
