#include "store/state_cache.h"

namespace reprise {

namespace {

std::size_t MemoryOf(const std::string& text) {
  constexpr std::size_t kAllocation = 16, kInPlace = 15;  // bytes that an allocation costs; bytes that need none
  return text.capacity() > kInPlace ? text.capacity() + kAllocation : 0;
}

}  // namespace

std::size_t MemoryOf(const AgentState& state) {
  std::size_t bytes = sizeof(state) + state.messages.size() * sizeof(Message);
  for (const Message& message : state.messages) {
    bytes += MemoryOf(message.tool_call_id) + MemoryOf(message.name) + MemoryOf(message.extras);
    if (message.content) bytes += MemoryOf(*message.content);
    bytes += message.tool_calls.capacity() * sizeof(ToolCall);
    for (const ToolCall& call : message.tool_calls) {
      bytes += MemoryOf(call.id) + MemoryOf(call.name) + MemoryOf(call.arguments);
    }
  }
  for (const Grant& grant : state.grants) {
    bytes += sizeof(grant) + MemoryOf(grant.tool_name) + MemoryOf(grant.means) + MemoryOf(grant.arguments_digest);
  }
  for (const Entity& entity : state.memory) {
    bytes += sizeof(entity) + MemoryOf(entity.type) + MemoryOf(entity.id) + MemoryOf(entity.name);
  }
  if (state.compaction) bytes += MemoryOf(state.compaction->summary);
  return bytes;
}

}  // namespace reprise
