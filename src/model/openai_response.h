#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "model/tool_call_assembler.h"
#include "reprise/model_client.h"

namespace reprise {

// Puts the answer to a chat completion together from the events of its stream. Text is handed on as it comes and not
// kept. Not thread-safe.
class OpenAiResponse {
 public:
  static constexpr std::size_t kMaxTextBytes = 64u << 20;  // text and thinking together

  // Both must outlive this.
  OpenAiResponse(ModelStream& stream, std::string_view api_key) : stream_(stream), api_key_(api_key) {}

  // Takes the data of one event. False: no more is wanted, because the answer is complete or broken.
  bool TakeEvent(std::string_view data);
  // Takes a whole answer that came as one JSON document from a provider that does not stream.
  void TakeDocument(std::string_view json);
  // The network's batch has ended.
  void EndBatch();

  // The provider has said that the answer is complete.
  bool complete() const { return done_ || !finish_reason_.empty(); }
  bool failed() const { return error_.has_value(); }
  // The answer. kProvider if it is broken, or was cut off before it was complete.
  Result<ModelResponse> Take();

 private:
  struct Json;  // what touches the JSON library; in the source file
  bool Parse(std::string_view json);
  void Reject(Error error);
  void AddText(std::string_view text);
  void AddThinking(std::string_view text);
  bool HasRoomFor(std::size_t bytes);

  ModelStream& stream_;
  const std::string_view api_key_;
  ModelResponse response_;
  std::size_t text_bytes_ = 0;  // handed on so far, text and thinking together
  bool has_text_ = false;       // other than thinking
  ToolCallAssembler tool_calls_;
  std::string finish_reason_;
  bool done_ = false;
  bool handed_over_ = false;  // something, in this batch
  std::optional<Error> error_;
};

}  // namespace reprise
