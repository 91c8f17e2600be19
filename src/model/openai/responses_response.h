#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "model/provider_response.h"
#include "model/tool_call_assembler.h"

namespace reprise {

// The answer of the Responses API (https://platform.openai.com/docs/api-reference/responses-streaming). Refusals count
// as text; summaries of the reasoning, or the reasoning itself where a server shows it, as thinking. The items of the
// answer are kept for the provider (see response_items.h).
class ResponsesResponse : public ProviderResponse {
 public:
  using ProviderResponse::ProviderResponse;

  bool TakeEvent(std::string_view data) override;
  void TakeDocument(std::string_view json) override;
  bool complete() const override { return !status_.empty(); }
  Result<ModelResponse> Take() override;

 private:
  struct Json;  // what touches the JSON library; in the source file

  std::map<std::int64_t, std::size_t> text_bytes_;                // that were streamed, by the item's place
  std::map<std::int64_t, std::shared_ptr<reprise::Json>> items_;  // that are whole, by their places
  std::size_t open_calls_ = 0;                                    // of which only the beginning has come
  bool has_thinking_ = false;                                     // some was streamed
  ToolCallAssembler tool_calls_;
  TokenUsage usage_;
  std::string model_;
  std::string status_;             // "completed" or "incomplete", at the end
  std::string incomplete_reason_;  // "max_output_tokens", "content_filter"
};

}  // namespace reprise
