#pragma once

#include <optional>
#include <string>

#include "reprise/interaction.h"

namespace reprise {

inline ChatId Chat1() { return *ChatId::Parse("chat1"); }

// Seconds after the beginning of 2100, which is later than the clock of any test.
inline Timestamp At(int second) { return Timestamp(std::chrono::seconds(4'102'444'800 + second)); }

// A finished interaction with events and a state; `text` distinguishes it from others.
inline Interaction Sample(const ChatId& chat, InteractionId id, std::optional<InteractionId> parent,
                          const std::string& text) {
  const int second = static_cast<int>(id.number()) * 10;
  Interaction interaction{.id = id,
                          .chat_id = chat,
                          .parent_id = parent,
                          .edited_from = std::nullopt,
                          .status = InteractionStatus::kCompleted,
                          .user_message = text,
                          .events = {},
                          .final_agent_state = AgentState{},
                          .model = "offline",
                          .usage = {.input_tokens = 3, .output_tokens = 5},
                          .error = std::nullopt,
                          .created_at = At(second),
                          .completed_at = At(second + 1)};
  interaction.events.push_back(
      {.seq = 2, .round_index = 0, .at = At(second), .payload = event::Answer{.content = "answer to " + text}});
  AgentState& state = *interaction.final_agent_state;
  state.messages.push_back(
      {.role = Role::kUser, .content = text, .tool_calls = {}, .tool_call_id = {}, .name = {}, .extras = {}});
  state.messages.push_back({.role = Role::kAssistant,
                            .content = "answer to " + text,
                            .tool_calls = {},
                            .tool_call_id = {},
                            .name = {},
                            .extras = {}});
  state.grants.push_back({.tool_name = "echo", .arguments_digest = "sha256:" + std::string(64, 'a')});
  return interaction;
}
inline Interaction Sample(std::uint32_t number, std::optional<std::uint32_t> parent, const std::string& text) {
  return Sample(Chat1(), InteractionId::FromNumber(number),
                parent ? std::optional(InteractionId::FromNumber(*parent)) : std::nullopt, text);
}

inline InteractionId Id(std::uint32_t number) { return InteractionId::FromNumber(number); }

}  // namespace reprise
