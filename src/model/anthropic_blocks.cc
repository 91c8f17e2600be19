#include "model/anthropic_blocks.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "model/provider_extras.h"

namespace reprise {
namespace {

using Kind = AnthropicBlock::Kind;

std::vector<AnthropicBlock> Kept(const Message& message, std::string_view provider) {
  std::vector<AnthropicBlock> blocks;
  if (message.extras.empty()) return blocks;
  const Json extras = ParseExtras(message);
  const Json* const own = FindProviderExtras(extras, provider);
  const Json& holder = own ? *own : extras;
  const auto kept = holder.find(own ? kBlocks : kAnthropicBlocks);
  if (kept == holder.end() || !kept->is_array()) return blocks;
  for (const Json& block : *kept) {
    const auto type = block.is_object() ? block.find("type") : block.end();
    if (type == block.end()) continue;
    if (*type == "text") {
      const auto bytes = block.find("bytes");
      const bool is_size = bytes != block.end() && bytes->is_number_unsigned();
      blocks.push_back({.kind = Kind::kText, .text_bytes = is_size ? bytes->get<std::size_t>() : 0});
    } else if (*type == "tool_use") {
      blocks.push_back({.kind = Kind::kToolUse});
    } else {
      blocks.push_back({.kind = Kind::kVerbatim, .json = DumpJson(block)});
    }
  }
  return blocks;
}

bool Fit(const std::vector<AnthropicBlock>& blocks, const Message& message) {
  std::size_t left = message.content ? message.content->size() : 0, calls = 0;
  for (const AnthropicBlock& block : blocks) {
    if (block.text_bytes > left) return false;
    left -= block.text_bytes;
    if (block.kind == Kind::kToolUse) ++calls;
  }
  return left == 0 && calls == message.tool_calls.size();
}

}  // namespace

std::string ExtrasOf(const std::vector<AnthropicBlock>& blocks, std::string_view provider) {
  const bool plain = std::none_of(blocks.begin(), blocks.end(),
                                  [](const AnthropicBlock& block) { return block.kind == Kind::kVerbatim; });
  if (plain) return {};
  Json kept = Json::array();
  for (const AnthropicBlock& block : blocks) {
    switch (block.kind) {
      case Kind::kText:
        kept.push_back({{"type", "text"}, {"bytes", block.text_bytes}});
        break;
      case Kind::kToolUse:
        kept.push_back({{"type", "tool_use"}});
        break;
      case Kind::kVerbatim:
        if (auto json = ParseJson(block.json, kMaxJsonDepth, DuplicateMembers::kLastWins))
          kept.push_back(*std::move(json));
        break;
    }
  }
  return MakeProviderExtras(provider, {{std::string(kBlocks), std::move(kept)}});
}

std::vector<AnthropicBlock> BlocksOf(const Message& message, std::string_view provider) {
  std::vector<AnthropicBlock> blocks = Kept(message, provider);
  if (!blocks.empty() && Fit(blocks, message)) return blocks;
  std::erase_if(blocks, [](const AnthropicBlock& block) { return block.kind != Kind::kVerbatim; });
  blocks.push_back({.kind = Kind::kText, .text_bytes = std::string::npos});
  blocks.resize(blocks.size() + message.tool_calls.size(), {.kind = Kind::kToolUse});
  return blocks;
}

}  // namespace reprise
