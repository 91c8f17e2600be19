#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/message.h"

namespace reprise {

// The member of what is kept for the provider (see provider_extras.h) that has the order and the signed parts of an
// Anthropic answer:
//
//             "blocks": [{"type":"thinking","thinking":"...","signature":"..."},
//                        {"type":"redacted_thinking","data":"..."},
//                        {"type":"text","bytes":12}, {"type":"tool_use"}]
//
// Thinking is there as it came, because the provider takes it back only unchanged and in its place. Text and calls are
// in the message itself; their blocks say how many bytes of its content, or that the next of its calls, stand here.
inline constexpr std::string_view kBlocks = "blocks";
// The same as version 0.1 kept it, beside provider_extras: of which provider is not known, so it goes to any of this
// type.
inline constexpr std::string_view kAnthropicBlocks = "anthropic_blocks";

// One block of an answer.
struct AnthropicBlock {
  enum class Kind { kText, kToolUse, kVerbatim };
  Kind kind = Kind::kText;
  std::size_t text_bytes = 0;  // kText; npos: all that is left
  std::string json{};          // kVerbatim: the block as it came
};

// The extras of an assistant message with these blocks; empty if they say nothing that the message does not.
std::string ExtrasOf(const std::vector<AnthropicBlock>& blocks, std::string_view provider);

// The blocks of an assistant message for `provider`. One without its own (it came from another provider), or whose
// blocks do not fit its text and calls any more, is: what it has kept of thinking, its text, its calls.
std::vector<AnthropicBlock> BlocksOf(const Message& message, std::string_view provider);

}  // namespace reprise
