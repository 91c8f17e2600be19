#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/message.h"

namespace reprise {

// The member of the provider's extras (see provider_extras.h) that holds the order and the signed parts of an Anthropic
// answer:
//
//             "blocks": [{"type":"thinking","thinking":"...","signature":"..."},
//                        {"type":"redacted_thinking","data":"..."},
//                        {"type":"text","bytes":12}, {"type":"tool_use"}]
//
// Thinking is kept unchanged, because the provider accepts it back only unchanged and in its place. Text and calls
// stand in the message itself; their blocks give the number of bytes of its content, or refer to the next of its calls.
inline constexpr std::string_view kBlocks = "blocks";
// The same as version 0.1 stored it, beside provider_extras. It does not name the provider, so it goes to any provider
// of this type.
inline constexpr std::string_view kAnthropicBlocks = "anthropic_blocks";

// One block of an answer.
struct AnthropicBlock {
  enum class Kind { kText, kToolUse, kVerbatim };
  Kind kind = Kind::kText;
  std::size_t text_bytes = 0;  // kText; npos: all the rest
  std::string json{};          // kVerbatim: the block, unchanged
};

// The extras of an assistant message with these blocks; empty if they add nothing to the message.
std::string ExtrasOf(const std::vector<AnthropicBlock>& blocks, std::string_view provider);

// The blocks of an assistant message for `provider`. If it has none for this provider (another one wrote it), or its
// blocks no longer fit its text and calls, the blocks are built from its stored thinking, text and calls.
std::vector<AnthropicBlock> BlocksOf(const Message& message, std::string_view provider);

}  // namespace reprise
