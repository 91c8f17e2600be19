#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "model/provider_response.h"
#include "model/tool_call_assembler.h"

namespace reprise {

// The answer to a chat completion. `refusal` counts as text, `reasoning_content` and `reasoning` as thinking. Members
// that chat completions do not define are kept for the provider (see kept_members.h and provider_extras.h).
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
  reprise::Json& members();
  std::string TakeExtras();

  std::shared_ptr<reprise::Json> members_;  // of the message, that are kept; null: none
  ModelResponse response_;
  ToolCallAssembler tool_calls_;
  std::string finish_reason_;
  bool done_ = false;
  bool is_document_ = false;  // nothing is in pieces
};

}  // namespace reprise
