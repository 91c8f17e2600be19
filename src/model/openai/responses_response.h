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
//
// Items are told apart by `output_index`, where a server leaves that out by their ids, and else by their order: the end
// of an item closes it.
class ResponsesResponse : public ProviderResponse {
 public:
  using ProviderResponse::ProviderResponse;

  bool complete() const override { return !status_.empty(); }
  Result<ModelResponse> Take() override;

 protected:
  void TakeObject(const EventJson& json, bool is_whole) override;
  bool is_over() const override { return complete(); }

 private:
  struct Json;  // what touches the JSON library; in the source file

  // An item, by its place in the answer.
  struct Item {
    std::string id{};
    Digest text{};                           // that was streamed
    bool is_call = false;                    // has begun as one
    std::shared_ptr<reprise::Json> whole{};  // null until its end has come
  };
  std::map<std::int64_t, Item> items_;
  bool has_streamed_thinking_ = false;
  ToolCallAssembler tool_calls_;
  TokenUsage usage_;
  std::string model_;
  std::string status_;             // of the response, at the end
  std::string incomplete_reason_;  // "max_output_tokens", "content_filter"
};

}  // namespace reprise
