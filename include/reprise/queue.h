#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/error.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// What happens to a run when its last client disconnects.
enum class OnDisconnect { kCancel, kContinue };

// A message that waits for earlier runs of its chat.
struct QueuedMessage {
  std::string id;  // "queued_" and 128 random bits
  std::string user_message;
  std::string model{};  // empty: the default at the start
  OnDisconnect on_disconnect = OnDisconnect::kCancel;
  Timestamp created_at{};
  std::optional<ClientRequest> request{};
  std::optional<ApprovalMode> approval_mode{};  // StartRequest::approval_mode
  bool operator==(const QueuedMessage&) const = default;
};

inline constexpr std::size_t kMaxQueued = 100;                   // messages in a chat
inline constexpr std::size_t kMaxQueuedBytes = 8 * 1024 * 1024;  // of their text

// A queued message as stored.
struct WaitingMessage {
  QueuedMessage message;
  std::int64_t version = 0;        // differs after every change
  bool is_others = false;          // another live process is responsible for it
  std::optional<Error> failure{};  // why it could not start; until it is changed, it blocks no other message
};

// Keeps queued messages, each separately, so that concurrent processes lose none. All processes agree on a chat's first
// message, and only that one may start (RunBeginning::queued). Thread-safe. Failures as InteractionStore. REQUIRES for
// additions: the chat exists, or an interaction of it was reserved.
//
//   const reprise::QueuedMessage message{.id = "queued_0123456789abcdef0123456789abcdef", .user_message = "And then?"};
//   if (auto added = store.AddQueued(chat, message); !added) return Complain(added.error().message);
//   auto queue = store.LoadQueue(chat);
//   if (queue && !queue->empty()) Print(queue->front().message.user_message);
class QueueStore {
 public:
  virtual ~QueueStore() = default;

  // In queue order; none if there is no such chat.
  virtual Result<std::vector<WaitingMessage>> LoadQueue(const ChatId& chat) = 0;
  // Appends the message; durable when it returns ok. This process becomes responsible for it. kUnavailable (reason
  // "queue_full").
  virtual Result<void> AddQueued(const ChatId& chat, const QueuedMessage& message) = 0;
  // Replaces the text; a failed message may start again. kNotFound: it does not wait.
  virtual Result<void> ChangeQueued(const ChatId& chat, std::string_view id, const std::string& user_message) = 0;
  // kNotFound likewise, but possibly ok for a removed message, because a client that lost the answer asks again.
  virtual Result<void> RemoveQueued(const ChatId& chat, std::string_view id) = 0;
  // Records why it could not start, for people to see.
  virtual Result<void> FailQueued(const ChatId& chat, std::string_view id, const Error& failure) = 0;
  // The message has started, as its run's journal says; ok if it does not wait. If this cannot be written, the message
  // does not return in this process, and the next change repairs the store.
  virtual Result<void> TakeQueued(const ChatId& chat, std::string_view id) = 0;
  // Removes all messages, also unreadable ones.
  virtual Result<void> ClearQueue(const ChatId& chat) = 0;
  // The chats with messages that this process may start. May look at every chat.
  virtual Result<std::vector<ChatId>> ListQueues() = 0;

  // --- where other processes use the same chats --------------------------------------------------------------------
  // The run that another process made of a message of this process; nullopt: none.
  virtual Result<std::optional<InteractionId>> BegunElsewhere(const ChatId&, std::string_view) {
    return std::optional<InteractionId>();
  }
  // This process will start no more messages; other processes may take over those it owned.
  virtual void LeaveQueues() {}
};

}  // namespace reprise
