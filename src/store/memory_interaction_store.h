#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "reprise/interaction_store.h"
#include "store/store_core.h"
#include "store/whole_queues.h"

namespace reprise {

// Keeps interactions as long as the object lives. Thread-safe. For programs that embed the engine and store nothing,
// and for tests.
class MemoryInteractionStore final : public StoreCore {
 public:
  Result<InteractionId> ReserveInteraction(const ChatId& chat) override;
  Result<void> SaveInteraction(const Interaction& interaction) override;
  QueueStore& queues() override { return queues_; }
  Result<Interaction> LoadInteraction(const ChatId& chat, InteractionId id) override;
  Result<Chat> LoadChat(const ChatId& chat) override;
  Result<ChatSummary> LoadSummary(const ChatId& chat) override;
  Result<std::optional<AgentState>> LoadFinalState(const ChatId& chat, InteractionId id) override;
  Result<std::optional<AgentState>> LoadPreviousState(const ChatId& chat, InteractionId id) override;
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
  std::shared_ptr<ChatList> List() override;
  Result<std::string> ReadDigest(const ChatId&, InteractionId) override { return std::string(); }
  Result<IncomingChat> CopyOfBranch(const ChatId& source, InteractionId last, const ChatId& chat,
                                    const std::optional<std::string>& title) override;
  Result<void> AddEmpty(const ChatIndex& index) override;
  Result<ChatSummary> AddWhole(const IncomingChat& chat) override;
  Result<ChatSummary> ChangeIndex(const ChatId& chat, bool while_running, const IndexChange& change) override;
  Result<void> MoveToTrash(const ChatId& chat, const std::vector<InteractionId>& interactions) override;
  Result<StoredChat*> Find(const ChatId& chat) REQUIRES(mutex_);
  StoredChat& FindOrCreate(const ChatId& chat) REQUIRES(mutex_);

  Mutex mutex_;
  std::unordered_map<ChatId, StoredChat> chats_ GUARDED_BY(mutex_);
  WholeQueues queues_{{.read = [this](const ChatId& chat) { return ReadQueue(chat); },
                       .write = [this](const ChatId& chat, const auto& messages) { return WriteQueue(chat, messages); },
                       .list = [] { return std::vector<ChatId>(); }}};  // none outlives the process
};

}  // namespace reprise
