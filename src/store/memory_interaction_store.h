#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "reprise/interaction_store.h"
#include "store/chat_index.h"
#include "store/whole_queues.h"

namespace reprise {

// Keeps interactions as long as the object lives. Thread-safe. For programs that embed the engine and store nothing,
// and for tests.
class MemoryInteractionStore final : public InteractionStore {
 public:
  Result<ChatSummary> CreateChat(const ChatId& chat, const ChatSettings& settings) override;
  Result<InteractionId> ReserveInteraction(const ChatId& chat) override;
  Result<void> SaveInteraction(const Interaction& interaction) override;
  Result<std::vector<WaitingMessage>> LoadQueue(const ChatId& chat) override { return queues_.Load(chat); }
  Result<void> AddQueued(const ChatId& chat, const QueuedMessage& message) override {
    return queues_.Add(chat, message);
  }
  Result<void> ChangeQueued(const ChatId& chat, std::string_view id, const std::string& user_message) override {
    return queues_.Change(chat, id, user_message);
  }
  Result<void> RemoveQueued(const ChatId& chat, std::string_view id) override { return queues_.Remove(chat, id); }
  Result<void> FailQueued(const ChatId& chat, std::string_view id, const Error& failure) override {
    return queues_.NoteFailure(chat, id, failure);
  }
  Result<void> TakeQueued(const ChatId& chat, std::string_view id) override { return queues_.Take(chat, id); }
  Result<void> ClearQueue(const ChatId& chat) override { return queues_.Clear(chat); }
  Result<std::vector<ChatId>> ListQueues() override { return std::vector<ChatId>(); }  // none outlives the process
  Result<Interaction> LoadInteraction(const ChatId& chat, InteractionId id) override;
  Result<Chat> LoadChat(const ChatId& chat) override;
  Result<ChatSummary> LoadSummary(const ChatId& chat) override;
  Result<std::optional<AgentState>> LoadFinalState(const ChatId& chat, InteractionId id) override;
  Result<std::optional<AgentState>> LoadPreviousState(const ChatId& chat, InteractionId id) override;
  Result<std::vector<ChatSummary>> ListChats() override;
  Result<ChatSummary> ChangeChat(const ChatId& chat, const ChatSettings& settings) override;
  Result<ChatSummary> MoveHead(const ChatId& chat, InteractionId head) override;
  Result<ChatSummary> ForkChat(const ChatId& source, InteractionId last, const ChatId& chat,
                               const std::optional<std::string>& title) override;
  Result<ChatSummary> ImportChat(const IncomingChat& chat) override;
  Result<std::vector<InteractionId>> RemoveBranch(const ChatId& chat, InteractionId from) override;
  Result<void> DeleteChat(const ChatId& chat) override;

 private:
  struct StoredChat {
    ChatIndex index;
    std::map<InteractionId, Interaction> interactions;
    std::uint32_t next_number = 1;
    std::vector<QueuedMessage> queue{};
  };
  Result<std::vector<QueuedMessage>> ReadQueue(const ChatId& chat);
  Result<void> WriteQueue(const ChatId& chat, const std::vector<QueuedMessage>& messages);
  Result<StoredChat*> Find(const ChatId& chat) REQUIRES(mutex_);
  StoredChat& FindOrCreate(const ChatId& chat) REQUIRES(mutex_);

  Mutex mutex_;
  std::unordered_map<ChatId, StoredChat> chats_ GUARDED_BY(mutex_);
  WholeQueues queues_{[this](const ChatId& chat) { return ReadQueue(chat); },
                      [this](const ChatId& chat, const auto& messages) { return WriteQueue(chat, messages); }};
};

}  // namespace reprise
