#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/event.h"
#include "reprise/ids.h"
#include "reprise/message.h"
#include "reprise/timestamp.h"

namespace reprise {

// Why an interaction FAILED, as its client sees it.
struct InteractionError {
  std::string code, message;
  bool retryable = false;
  bool operator==(const InteractionError&) const = default;
};

// A file that the user gave to the agent with a message.
struct Attachment {
  FileId id;
  std::string filename{}, mime_type{};
  std::uint64_t size_bytes = 0;
  bool operator==(const Attachment&) const = default;
};

// One user message and everything the agent did about it.
struct Interaction {
  InteractionId id;
  ChatId chat_id;
  std::optional<InteractionId> parent_id{};    // nullopt: the first of its branch
  std::optional<InteractionId> edited_from{};  // set by edit and regenerate
  InteractionStatus status = InteractionStatus::kRunning;
  std::string user_message{};                     // as it was written
  std::vector<Attachment> attachments{};          // their text is in the state's message, behind what was written
  std::vector<AgentEvent> events{};               // as stored: no deltas, no frames, rising seq
  std::optional<AgentState> final_agent_state{};  // nullopt while it runs
  std::string model{};
  TokenUsage usage{};
  std::optional<InteractionError> error{};
  Timestamp created_at{};
  std::optional<Timestamp> completed_at{};
  bool operator==(const Interaction&) const = default;
};

// A chat without its interactions.
struct ChatSummary {
  ChatId id;
  std::string title{};
  Timestamp created_at{};
  Timestamp updated_at{};
  std::optional<InteractionId> head{};             // the interaction the chat currently ends at; nullopt: empty
  std::optional<InteractionStatus> head_status{};  // that interaction's status
  std::optional<InteractionRef> forked_from{};     // what it was a copy of when it was made
  bool operator==(const ChatSummary&) const = default;
};

// An interaction that is stored but cannot be read; its neighbours can.
struct DamagedInteraction {
  InteractionId id;
  Error error;                               // kCorruption
  std::optional<InteractionId> parent_id{};  // what its header says, unchecked: only good for showing what hangs where
};

// A chat with all its interactions, on every branch, by rising number.
struct Chat {
  ChatSummary summary;
  std::vector<Interaction> interactions;
  std::vector<DamagedInteraction> damaged;
};

}  // namespace reprise
