#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/provider_response.h"
#include "model/request_parts.h"
#include "model/tool_call_assembler.h"

namespace reprise {

// The answer to a request to Anthropic's Messages API
// (https://platform.claude.com/docs/en/build-with-claude/streaming). Thinking blocks, the provider's own calls with
// their results (https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools), and citations are kept
// unchanged in the response's extras (see request_parts.h). The input tokens include those from the provider's cache.
class AnthropicResponse : public ProviderResponse {
 public:
  static constexpr std::size_t kMaxBlocks = 4096;

  using ProviderResponse::ProviderResponse;

  bool complete() const override { return stopped_ || !stop_reason_.empty(); }
  Result<ModelResponse> Take() override;

 protected:
  void TakeObject(const EventJson& json, bool is_whole) override;
  bool is_over() const override { return stopped_; }

 private:
  struct Json;  // code that touches the JSON library; in the source file
  // A block that is still arriving.
  struct OpenBlock {
    enum class Kind { kText, kThinking, kVerbatim, kToolUse, kOwnCall, kIgnored };
    std::int64_t index = 0;
    Kind kind = Kind::kIgnored;
    bool closed = false;
    std::size_t text_bytes = 0;           // kText
    std::int64_t characters = 0;          // kText
    std::string citations{};              // kText: objects, each followed by a comma
    std::string thinking{}, signature{};  // kThinking
    std::string json{};                   // kVerbatim, kOwnCall
    std::string input{};                  // kOwnCall: pieces of the arguments
  };
  OpenBlock* Find(std::int64_t index);
  std::string TakeExtras();
  void TellSearches(ModelResponse& response) const;
  bool HasOwnCalls() const;
  bool EndedByItself() const;

  std::vector<OpenBlock> blocks_;
  ToolCallAssembler tool_calls_;
  std::string model_;
  TokenUsage usage_;  // as the provider counts: without tokens read from or written to the cache
  std::string stop_reason_;
  bool stopped_ = false;  // message_stop
};

}  // namespace reprise
