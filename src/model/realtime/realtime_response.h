#pragma once

#include <set>
#include <string>

#include "model/provider_response.h"
#include "model/tool_call_assembler.h"

namespace reprise {

// The answer of a model that talks (https://platform.openai.com/docs/api-reference/realtime-server-events): its sound,
// and as text what it says. Also understands the names of the interface's beta.
class RealtimeResponse : public ProviderResponse {
 public:
  using ProviderResponse::ProviderResponse;

  bool complete() const override { return !status_.empty(); }
  Result<ModelResponse> Take() override;

 protected:
  void TakeObject(const EventJson& json, bool is_whole) override;
  bool is_over() const override { return complete(); }

 private:
  struct Json;  // code that touches the JSON library; in the source file

  ToolCallAssembler tool_calls_;
  std::set<std::string> seen_calls_;
  bool has_words_ = false;  // they have been streamed
  TokenUsage usage_;
  std::string status_, reason_;  // of the ended response
};

}  // namespace reprise
