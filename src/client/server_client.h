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

// A list in an answer; empty if there is none, because another program may answer, or another version.
const Json& ListedIn(const Json& answer, std::string_view name);

// An answer that the transport's thread receives and one other thread takes piece by piece.
class ArrivingAnswer final : public HttpResponseHandler {
 public:
  ArrivingAnswer();

  // Readable when Take may find something.
  int descriptor() const { return arrived_.get(); }

  struct Taken {
    int status = 0;  // 0 until the head has arrived
    HttpHeaders headers;
    std::optional<Result<void>> ended;  // nullopt while it goes on
  };
  // Does not wait. Sets `bytes` to those received since the last call, and uses its memory for the next ones.
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

// The events of an answer that is being received. For one thread. The destructor cancels the request.
class ArrivingEvents {
 public:
  struct Event {
    std::string name;
    Json data;
  };
  ArrivingEvents(const ArrivingEvents&) = delete;
  ArrivingEvents& operator=(const ArrivingEvents&) = delete;
  ~ArrivingEvents();

  // From now on, pieces of text that arrive together become one event, without a number, which makes drawing cheaper.
  void MergeText() { merges_text_ = true; }

  // Readable when Receive may find something.
  int descriptor() const;
  // Takes the bytes that have arrived; does not wait.
  void Receive();
  // The next event, in order; nullopt if all received events were returned.
  std::optional<Event> Next();
  // The events that Next will return.
  const std::deque<Event>& received() const { return events_; }
  // The end of the answer; nullopt while it goes on. Fails as ServerClient::Call does, also if the answer breaks off.
  const std::optional<Result<void>>& ended() const { return ended_; }

 private:
  friend class ServerClient;
  explicit ArrivingEvents(std::shared_ptr<ArrivingAnswer> arriving);

  const std::shared_ptr<ArrivingAnswer> arriving_;
  std::stop_source stop_;
  void TakeText(std::string_view data);

  std::string bytes_;  // of the last Receive
  SseParser parser_;
  bool merges_text_ = false;
  std::deque<Event> events_;
  std::string refusal_;
  std::optional<Result<void>> ended_;
};

// A message under way, and its answer as it arrives. The destructor cancels it.
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

// Calls a running server's HTTP interface. For one thread.
class ServerClient {
 public:
  // `url` has no path; `token` may be empty. `settings` is a digest of the settings that turns must run with (empty:
  // any); a server with other settings refuses every request (reason "other_settings").
  ServerClient(std::string url, std::string token, std::string settings = {})
      : url_(std::move(url)), token_(std::move(token)), settings_(std::move(settings)) {}

  const std::string& url() const { return url_; }
  const std::string& settings() const { return settings_; }
  // Changes the server's URL and the settings.
  void SetPlace(std::string url, std::string settings) {
    url_ = std::move(url);
    settings_ = std::move(settings);
  }

  // Returns the answer's JSON. A status of 400 or more is kUnavailable, with the server's reason and message.
  Result<Json> Call(const std::string& method, const std::string& path, const Json& body = Json(nullptr));

  // GET of a route whose answer is not JSON.
  Result<std::string> Text(const std::string& path);

  // Uploads a file to a chat (POST .../files). Returns the answer's JSON.
  Result<Json> Upload(const std::string& path, const std::string& name, std::string bytes);

  // POST of a body that the server may work on silently for up to an hour. kCancelled if `stop` is requested.
  Result<Json> CallAndWait(const std::string& path, const Json& body, std::stop_token stop);

  // Sends a request whose answer is a stream of events, and does not wait. The client must outlive the stream. With an
  // idempotency key (if not empty) the request can be sent again: nothing begins twice.
  std::unique_ptr<ArrivingEvents> Stream(const std::string& method, const std::string& path, const Json& body,
                                         const std::string& idempotency_key = {});

  // Sends a message with these headers, and does not wait. The client must outlive the result.
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
