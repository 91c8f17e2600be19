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
// as text. Summaries of the reasoning, or the reasoning itself where a server shows it, count as thinking. The answer's
// items are kept for the provider (see response_items.h).
//
// Items are identified by `output_index`, else by their ids, else by their order, where the end of an item closes it.
class ResponsesResponse : public ProviderResponse {
 public:
  using ProviderResponse::ProviderResponse;

  bool complete() const override { return !status_.empty(); }
  Result<ModelResponse> Take() override;

 protected:
  void TakeObject(const EventJson& json, bool is_whole) override;
  bool is_over() const override { return complete(); }

 private:
  struct Json;  // code that touches the JSON library; in the source file

  // An item, by its index in the answer.
  struct Item {
    std::string id{};
    Digest text{};                           // the streamed text
    bool is_call = false;                    // it began as a call
    std::shared_ptr<reprise::Json> whole{};  // null until it has ended
  };
  std::map<std::int64_t, Item> items_;
  bool has_streamed_thinking_ = false;
  ToolCallAssembler tool_calls_;
  TokenUsage usage_;
  std::string model_;
  std::string status_;             // the response's final status
  std::string incomplete_reason_;  // "max_output_tokens", "content_filter"
};

}  // namespace reprise
