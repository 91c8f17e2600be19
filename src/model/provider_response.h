#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/model_client.h"

namespace reprise {

class EventJson;

// Puts a model's answer together from what its provider sends, in one provider's form. Text is handed on as it comes
// and not kept. Not thread-safe.
//
// What is not understood is no success: an answer is whole only if something was said, called or thought, and nothing
// told of a failure.
class ProviderResponse {
 public:
  // Where the answer comes from, and how long it may be.
  struct Source {
    std::string_view api_key = {};
    std::string_view provider = {};  // as it is configured
    std::size_t max_bytes = kMaxResponseBytes;
    std::vector<std::string> used_call_ids = {};  // that its calls may not have
  };

  // The stream and what the source names must outlive this.
  ProviderResponse(ModelStream& stream, Source source) : stream_(stream), source_(std::move(source)) {}
  virtual ~ProviderResponse() = default;
  ProviderResponse(const ProviderResponse&) = delete;
  ProviderResponse& operator=(const ProviderResponse&) = delete;

  // Takes the data of one event, and the type that the stream gave it. False: no more is wanted, because the answer is
  // complete or broken.
  bool TakeEvent(std::string_view data, std::string_view type = {});
  // Takes a whole answer that came as JSON from a provider that does not stream: as one document, or as the pieces of a
  // stream in its lines or in an array.
  void TakeDocument(std::string_view json);
  // The provider has said that the answer is complete.
  virtual bool complete() const = 0;
  // The answer. kProvider if it is broken, or was cut off before it was complete.
  virtual Result<ModelResponse> Take() = 0;

  // The network's batch has ended.
  void EndBatch();
  bool failed() const { return error_.has_value(); }
  // Whether the model has said anything since the last call. Pings, empty deltas and what is passed over say nothing.
  bool TakeProgress() { return std::exchange(progressed_, false); }

 protected:
  // Takes the object of an event, or of a document that is the whole answer.
  virtual void TakeObject(const EventJson& json, bool is_whole) = 0;
  // "[DONE]" has come.
  virtual void TakeDone() {}
  // Nothing that comes now is wanted.
  virtual bool is_over() const { return false; }

  void AddText(std::string_view text);
  // False if there is no room for it.
  bool AddThinking(std::string_view text);
  // Something was thought that is not shown.
  void NoteThought() { has_thinking_ = true; }
  // Counts so many bytes of whatever else is kept. False, and the answer is rejected, if they are too many.
  bool HasRoomFor(std::size_t bytes);
  void Progressed() { progressed_ = true; }
  // The first error counts.
  void Reject(Error error);
  // An object, or a part of one, that may tell of a failure: rejects the answer if it does. `is_known`: it belongs to
  // an answer, so that only members for errors count.
  void CheckForFailure(std::string_view json, bool is_known);
  // The answer is complete and nothing was rejected: what it is worth if it has `calls`. `reason`: why it is not whole
  // (see ModelResponse::truncated), empty if it is.
  Result<void> CheckSaid(bool has_calls, std::string_view reason) const;
  // A provider's own word for why an answer ended, as it can be shown.
  static std::string OwnWord(std::string_view reason);
  const std::optional<Error>& error() const { return error_; }
  std::string_view api_key() const { return source_.api_key; }
  std::string_view provider() const { return source_.provider; }
  const std::vector<std::string>& used_call_ids() const { return source_.used_call_ids; }
  bool has_text() const { return has_text_; }  // other than thinking
  bool has_thinking() const { return has_thinking_; }

  // What tells texts apart without keeping them.
  struct Digest {
    std::size_t bytes = 0;
    std::uint64_t hash = 1469598103934665603u;  // FNV-1a
    void Add(std::string_view text);
    bool operator==(const Digest&) const = default;
    static Digest Of(std::string_view text);
  };

 private:
  void TakeNoObject(std::string_view data);

  ModelStream& stream_;
  const Source source_;
  std::size_t bytes_ = 0;  // of the answer so far
  bool progressed_ = false;
  bool has_text_ = false;
  bool has_thinking_ = false;
  bool handed_over_ = false;  // something, in this batch
  std::optional<Error> error_;
};

}  // namespace reprise
