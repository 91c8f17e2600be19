#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reprise/interaction_store.h"

namespace reprise {

// Forwards every call to another store. Doubles override only the calls that they change.
class ForwardingStore : public InteractionStore {
 public:
  explicit ForwardingStore(InteractionStore& base) : base_(base) {}

  Result<ChatSummary> CreateChat(const ChatId& c, const ChatSettings& settings) override {
    return base_.CreateChat(c, settings);
  }
  Result<InteractionId> ReserveInteraction(const ChatId& c) override { return base_.ReserveInteraction(c); }
  Result<void> SaveInteraction(const Interaction& interaction) override { return base_.SaveInteraction(interaction); }
  Result<std::unique_ptr<Journal>> BeginJournal(const ChatId& c, InteractionId i,
                                                const std::vector<std::string>& records) override {
    return base_.BeginJournal(c, i, records);
  }
  Result<std::vector<InteractionRef>> ListUnfinished() override { return base_.ListUnfinished(); }
  Result<JournalContent> ReadJournal(const ChatId& c, InteractionId i) override { return base_.ReadJournal(c, i); }
  Result<void> DropJournal(const ChatId& c, InteractionId i) override { return base_.DropJournal(c, i); }
  QueueStore& queues() override { return base_.queues(); }
  Result<Interaction> LoadInteraction(const ChatId& c, InteractionId i) override { return base_.LoadInteraction(c, i); }
  Result<Chat> LoadChat(const ChatId& c) override { return base_.LoadChat(c); }
  Result<ChatSummary> LoadSummary(const ChatId& c) override { return base_.LoadSummary(c); }
  Result<std::optional<AgentState>> LoadFinalState(const ChatId& c, InteractionId i) override {
    return base_.LoadFinalState(c, i);
  }
  Result<std::optional<AgentState>> LoadPreviousState(const ChatId& c, InteractionId i) override {
    return base_.LoadPreviousState(c, i);
  }
  Result<std::vector<ChatSummary>> ListChats() override { return base_.ListChats(); }
  Result<ChatPage> ListPage(const std::optional<ChatPlace>& after, std::size_t limit,
                            const ChatFilter& wanted) override {
    return base_.ListPage(after, limit, wanted);
  }
  Result<std::vector<UnreadableChat>> ListUnreadableChats() override { return base_.ListUnreadableChats(); }
  Result<ChatSummary> ChangeChat(const ChatId& c, const ChatSettings& settings) override {
    return base_.ChangeChat(c, settings);
  }
  Result<ChatSummary> MoveHead(const ChatId& c, InteractionId i) override { return base_.MoveHead(c, i); }
  Result<ChatSummary> ForkChat(const ChatId& source, InteractionId last, const ChatId& c,
                               const std::optional<std::string>& title) override {
    return base_.ForkChat(source, last, c, title);
  }
  Result<ChatSummary> ImportChat(const IncomingChat& chat) override { return base_.ImportChat(chat); }
  Result<void> DeleteChat(const ChatId& c) override { return base_.DeleteChat(c); }
  Result<std::vector<InteractionId>> RemoveBranch(const ChatId& c, InteractionId i) override {
    return base_.RemoveBranch(c, i);
  }
  Result<std::vector<TrashEntry>> ListTrash() override { return base_.ListTrash(); }
  Result<ChatSummary> RestoreChat(const ChatId& c, const std::string& entry) override {
    return base_.RestoreChat(c, entry);
  }

 protected:
  InteractionStore& base_;
};

// The same for a queue.
class ForwardingQueues : public QueueStore {
 public:
  explicit ForwardingQueues(QueueStore& base) : base_(base) {}

  Result<std::vector<WaitingMessage>> LoadQueue(const ChatId& c) override { return base_.LoadQueue(c); }
  Result<void> AddQueued(const ChatId& c, const QueuedMessage& message) override { return base_.AddQueued(c, message); }
  Result<void> ChangeQueued(const ChatId& c, std::string_view id, const std::string& text) override {
    return base_.ChangeQueued(c, id, text);
  }
  Result<void> RemoveQueued(const ChatId& c, std::string_view id) override { return base_.RemoveQueued(c, id); }
  Result<void> FailQueued(const ChatId& c, std::string_view id, const Error& failure) override {
    return base_.FailQueued(c, id, failure);
  }
  Result<void> TakeQueued(const ChatId& c, std::string_view id) override { return base_.TakeQueued(c, id); }
  Result<void> ClearQueue(const ChatId& c) override { return base_.ClearQueue(c); }
  Result<std::vector<ChatId>> ListQueues() override { return base_.ListQueues(); }

 protected:
  QueueStore& base_;
};

}  // namespace reprise
