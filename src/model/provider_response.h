#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/model_client.h"

namespace reprise {

// Puts a model's answer together from what its provider sends, in one provider's form. Text is handed on as it comes
// and not kept. Not thread-safe.
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

  // Takes the data of one event. False: no more is wanted, because the answer is complete or broken.
  virtual bool TakeEvent(std::string_view data) = 0;
  // Takes a whole answer that came as one JSON document from a provider that does not stream.
  virtual void TakeDocument(std::string_view json) = 0;
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
  void AddText(std::string_view text);
  // False if there is no room for it.
  bool AddThinking(std::string_view text);
  // Counts so many bytes of whatever else is kept. False, and the answer is rejected, if they are too many.
  bool HasRoomFor(std::size_t bytes);
  void Progressed() { progressed_ = true; }
  // The first error counts.
  void Reject(Error error);
  const std::optional<Error>& error() const { return error_; }
  std::string_view api_key() const { return source_.api_key; }
  std::string_view provider() const { return source_.provider; }
  const std::vector<std::string>& used_call_ids() const { return source_.used_call_ids; }
  bool has_text() const { return has_text_; }

 private:
  ModelStream& stream_;
  const Source source_;
  std::size_t bytes_ = 0;  // of the answer so far
  bool progressed_ = false;
  bool has_text_ = false;     // other than thinking
  bool handed_over_ = false;  // something, in this batch
  std::optional<Error> error_;
};

}  // namespace reprise
