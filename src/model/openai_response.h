#pragma once

#include <string>
#include <string_view>

#include "model/provider_response.h"
#include "model/tool_call_assembler.h"

namespace reprise {

// The answer to a chat completion. `refusal` counts as text, `reasoning_content` and `reasoning` as thinking.
class OpenAiResponse : public ProviderResponse {
 public:
  using ProviderResponse::ProviderResponse;

  bool TakeEvent(std::string_view data) override;
  void TakeDocument(std::string_view json) override;
  bool complete() const override { return done_ || !finish_reason_.empty(); }
  Result<ModelResponse> Take() override;

 private:
  struct Json;  // what touches the JSON library; in the source file
  bool Parse(std::string_view json);

  ModelResponse response_;
  ToolCallAssembler tool_calls_;
  std::string finish_reason_;
  bool done_ = false;
};

}  // namespace reprise
