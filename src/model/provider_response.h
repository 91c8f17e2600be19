#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sse_parser.h"
#include "model/provider_error.h"
#include "model/split_characters.h"
#include "reprise/model_client.h"
#include "reprise/transport.h"

namespace reprise {

class EventJson;
class ToolCallAssembler;

// Assembles a model's answer from a provider's events, in that provider's form. Text is passed on at once and not kept.
// Not thread-safe.
//
// An answer counts as complete only if it has text, calls or thinking and reported no failure.
class ProviderResponse {
 public:
  // The answer's source and its limit.
  struct Source {
    std::string_view api_key = {};
    std::string_view provider = {};  // its configured name
    std::size_t max_bytes = kMaxResponseBytes;
    std::vector<std::string> used_call_ids = {};  // that its calls must not reuse
  };

  // The stream and everything that `source` refers to must outlive this.
  ProviderResponse(ModelStream& stream, Source source) : stream_(stream), source_(std::move(source)) {}
  virtual ~ProviderResponse() = default;
  ProviderResponse(const ProviderResponse&) = delete;
  ProviderResponse& operator=(const ProviderResponse&) = delete;

  // Takes the data of one event and the stream's type for it. False: the answer is complete or broken, so stop reading.
  bool TakeEvent(std::string_view data, std::string_view type = {});
  // Takes a whole answer in JSON from a provider that does not stream: one document, or the pieces of a stream as lines
  // or an array.
  void TakeDocument(std::string_view json);
  // The provider has said that the answer is complete.
  virtual bool complete() const = 0;
  // The answer. kProvider if it is broken or incomplete.
  virtual Result<ModelResponse> Take() = 0;

  // Passes on the provider's name for the request, if a header has one.
  void TellRequestId(const HttpHeaders& headers);
  // Takes the events that wait for the other half of a character, which does not come any more.
  void TakeHeld();
  // Ends a batch of network data.
  void EndBatch();
  bool failed() const { return error_.has_value(); }
  // Whether the model has produced anything since the last call. Pings, empty deltas and ignored events do not count.
  bool TakeProgress() { return std::exchange(progressed_, false); }

 protected:
  // Takes the object of an event, or of a document that holds the whole answer.
  virtual void TakeObject(const EventJson& json, bool is_whole) = 0;
  // "[DONE]" has come.
  virtual void TakeDone() {}
  // No further data is needed.
  virtual bool is_over() const { return false; }

  void AddText(std::string_view text);
  // Text with which the model declines to answer.
  void AddRefusal(std::string_view text);
  // See ModelStream::OnSound. Beyond kMaxSoundBytes the answer is rejected.
  void AddSound(std::string_view samples);
  // False if the answer would exceed its limit.
  bool AddThinking(std::string_view text);
  // Notes thinking that is not shown.
  void NoteThought() { has_thinking_ = true; }
  // Counts `bytes` of other kept data. False, and the answer is rejected, if the limit is exceeded.
  bool HasRoomFor(std::size_t bytes);
  void Progressed() { progressed_ = true; }
  // Only the first error counts.
  void Reject(Error error);
  // Rejects the answer if `json`, an object, a part of one, or nothing, reports a failure. `is_known`: it belongs to an
  // answer, so only error members count.
  void CheckForFailure(std::string_view json, bool is_known);
  // Checks a complete answer that was not rejected. `reason`: why it is incomplete (see ModelResponse::truncated), or
  // empty.
  Result<void> CheckSaid(bool has_calls, std::string_view reason) const;
  // How an answer ended. `truncated`: see ModelResponse, not made displayable; `word`: what the provider said;
  // `setting`: see OutputLimitError.
  struct End {
    bool by_itself = false;  // the model finished, and the provider has sent all that belongs to its calls
    std::string_view truncated, word;
    std::string setting = {};
  };
  // The calls of an answer that has ended: none that may be cut off, and none of an answer that was refused, filtered,
  // or ended for a reason that is not known.
  Result<std::vector<ToolCall>> TakeCalls(ToolCallAssembler& calls, const End& end) const;
  // The error for an answer without content, or with calls, that was refused or filtered.
  static std::optional<Error> StoppedBy(std::string_view truncated);
  // Of two reasons for an answer's end the one with the higher number counts, else the later one.
  static int AlarmOf(std::string_view truncated);
  // The provider's own word for why an answer ended, made displayable.
  static std::string OwnWord(std::string_view reason);
  const std::optional<Error>& error() const { return error_; }
  std::string_view api_key() const { return source_.api_key; }
  std::string_view provider() const { return source_.provider; }
  const std::vector<std::string>& used_call_ids() const { return source_.used_call_ids; }
  bool has_text() const { return has_text_; }  // other than thinking
  bool has_refusal() const { return has_refusal_; }
  bool has_thinking() const { return has_thinking_; }

  // Compares texts without keeping them.
  struct Digest {
    std::size_t bytes = 0;
    std::uint64_t hash = 1469598103934665603u;  // FNV-1a
    void Add(std::string_view text);
    bool operator==(const Digest&) const = default;
    static Digest Of(std::string_view text);
  };

 private:
  bool TakeWhole(std::string_view data, std::string_view type);
  bool TakeEach(const std::vector<SplitCharacters::Event>& events);
  void TakeNoObject(std::string_view data);

  ModelStream& stream_;
  const Source source_;
  std::size_t bytes_ = 0;  // of the answer so far, beside its sound
  std::size_t sound_bytes_ = 0;
  bool progressed_ = false;
  bool has_text_ = false;
  bool has_refusal_ = false;
  bool has_thinking_ = false;
  bool handed_over_ = false;  // whether this batch produced output
  bool has_content_ = false;  // whether the stream was told so
  std::optional<Error> error_;
  SplitCharacters split_;
};

// Reads the HTTP response to a model request and detects its kind: an event stream, JSON (a document, or one per line),
// or an error. The data decides, not the content type. Comments, pings, empty deltas and whitespace are not progress:
// if a provider sends only those for `idle_timeout`, the batch with the first of them after the limit ends the request.
// After the answer's end, nothing but its usage is expected, and only for kUsageWait.
class ResponseReader : public HttpResponseHandler {
 public:
  static constexpr std::chrono::seconds kUsageWait{2};

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
  bool HasPage(std::string_view bytes);
  void TakeUnfinishedEvent();

  const std::unique_ptr<ProviderResponse> response_;
  const std::string_view api_key_;
  const std::chrono::milliseconds idle_timeout_;
  SseParser parser_;
  Kind kind_ = Kind::kError;
  int status_ = 0;
  HttpHeaders error_headers_;
  std::string body_;    // of a document or an error; of events, the begin
  char last_byte_ = 0;  // of events
  bool any_event_ = false;
  bool any_body_ = false;  // of a document or an error, since the last batch
  Clock::time_point last_progress_ = Clock::now();
  std::optional<Error> error_;
};

// Shows the body of a request (ModelRequest::sent). True if it is a draft, which is not sent: then `done` was called.
bool ShowsDraft(const ModelRequest& request, std::string_view body, const ModelClient::Done& done);

// Sends a model request and passes on the answer that `reader` builds; its `api_key` must outlive the request. On
// failure calls `learns` on the transport's thread: true if later requests of this kind omit the rejected part. Then
// the error is retryable at once.
void SendModelRequest(Transport& transport, HttpRequest http, std::shared_ptr<ResponseReader> reader,
                      std::stop_token stop, std::function<bool(const Error&)> learns, ModelClient::Done done);

}  // namespace reprise
