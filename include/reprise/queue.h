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

inline constexpr std::size_t kMaxQueued = 100;                   // messages in a chat
inline constexpr std::size_t kMaxQueuedBytes = 8 * 1024 * 1024;  // of their text

// One of them, as the store has it.
struct WaitingMessage {
  QueuedMessage message;
  std::int64_t version = 0;        // another one whenever it is changed
  bool is_others = false;          // another process, which lives, sees to it
  std::optional<Error> failure{};  // why it could not begin: until it is changed it holds nobody up
};

// Keeps the messages that wait, each by itself: whatever several processes do in one chat at once, nothing is lost.
// What a chat's first message is all see alike, and only that may begin (RunBeginning::queued). Thread-safe. Failures
// as those of InteractionStore. REQUIRES, where something is added: the chat is there, or an interaction of it was
// reserved.
class QueueStore {
 public:
  virtual ~QueueStore() = default;

  // In their order; none if there is no such chat.
  virtual Result<std::vector<WaitingMessage>> LoadQueue(const ChatId& chat) = 0;
  // At the end; durable when it returns ok, and this process sees to it. kUnavailable (reason "queue_full").
  virtual Result<void> AddQueued(const ChatId& chat, const QueuedMessage& message) = 0;
  // Its text is this one from now on, and it may begin if it could not. kNotFound: it does not wait (any more).
  virtual Result<void> ChangeQueued(const ChatId& chat, std::string_view id, const std::string& user_message) = 0;
  // kNotFound likewise; of one that was removed it may be ok, as whose answer was lost asks again.
  virtual Result<void> RemoveQueued(const ChatId& chat, std::string_view id) = 0;
  // Why it could not begin, for people to see.
  virtual Result<void> FailQueued(const ChatId& chat, std::string_view id, const Error& failure) = 0;
  // It has begun, as the journal of its run says: ok if it does not wait. What cannot be written now does not come back
  // in this process, and is made good by the next change.
  virtual Result<void> TakeQueued(const ChatId& chat, std::string_view id) = 0;
  // Removes all, also what cannot be read.
  virtual Result<void> ClearQueue(const ChatId& chat) = 0;
  // The chats in which something waits that this process may begin. May look at every chat.
  virtual Result<std::vector<ChatId>> ListQueues() = 0;

  // --- where other processes use the same chats --------------------------------------------------------------------
  // As what one of them has begun that was this process's; nullopt: nobody has.
  virtual Result<std::optional<InteractionId>> BegunElsewhere(const ChatId&, std::string_view) {
    return std::optional<InteractionId>();
  }
  // This process begins nothing more: what it saw to is anybody's.
  virtual void LeaveQueues() {}
};

}  // namespace reprise
