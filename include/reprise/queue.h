#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// What becomes of a run when its last client has gone.
enum class OnDisconnect { kCancel, kContinue };

// A message that waits for the runs before it in its chat.
struct QueuedMessage {
  std::string id;  // "queued_" and 128 random bits
  std::string user_message;
  std::string model{};  // empty: the default, when it starts
  OnDisconnect on_disconnect = OnDisconnect::kCancel;
  Timestamp created_at{};
  std::optional<ClientRequest> request{};
  bool operator==(const QueuedMessage&) const = default;
};

// Keeps the messages that wait. Failures as those of InteractionStore.
class QueueStore {
 public:
  virtual ~QueueStore() = default;

  // In their order; none if there is no such chat.
  virtual Result<std::vector<QueuedMessage>> LoadQueue(const ChatId& chat) = 0;
  // Puts these in the place of those; durable when it returns ok. REQUIRES: the chat is there, or an interaction of it
  // was reserved.
  virtual Result<void> SaveQueue(const ChatId& chat, const std::vector<QueuedMessage>& messages) = 0;
  // The chats in which messages wait. Looks at every chat.
  virtual Result<std::vector<ChatId>> ListQueues() = 0;
};

}  // namespace reprise
