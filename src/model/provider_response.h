#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "reprise/model_client.h"

namespace reprise {

// Puts a model's answer together from what its provider sends, in one provider's form. Text is handed on as it comes
// and not kept. Not thread-safe.
class ProviderResponse {
 public:
  static constexpr std::size_t kMaxTextBytes = 64u << 20;  // text and thinking together

  // Both must outlive this.
  ProviderResponse(ModelStream& stream, std::string_view api_key) : stream_(stream), api_key_(api_key) {}
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

 protected:
  void AddText(std::string_view text);
  void AddThinking(std::string_view text);
  // The first error counts.
  void Reject(Error error);
  const std::optional<Error>& error() const { return error_; }
  std::string_view api_key() const { return api_key_; }
  bool has_text() const { return has_text_; }

 private:
  bool HasRoomFor(std::size_t bytes);

  ModelStream& stream_;
  const std::string_view api_key_;
  std::size_t text_bytes_ = 0;  // handed on so far, text and thinking together
  bool has_text_ = false;       // other than thinking
  bool handed_over_ = false;    // something, in this batch
  std::optional<Error> error_;
};

}  // namespace reprise
