#include "store/memory_interaction_store.h"

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "domain/codec.h"
#include "store/incoming_chats.h"
#include "store/store_errors.h"

namespace reprise {

Result<MemoryInteractionStore::StoredChat*> MemoryInteractionStore::Find(const ChatId& chat) {
  const auto found = chats_.find(chat);
  if (found == chats_.end()) return NoSuchChat();
  return &found->second;
}

MemoryInteractionStore::StoredChat& MemoryInteractionStore::FindOrCreate(const ChatId& chat) {
  return chats_.try_emplace(chat, StoredChat{.index = NewIndex(chat), .interactions = {}}).first->second;
}

Result<void> MemoryInteractionStore::AddEmpty(const ChatIndex& index) {
  const MutexLock lock(mutex_);
  const bool is_new = chats_.emplace(index.summary.id, StoredChat{.index = index, .interactions = {}}).second;
  return is_new ? Result<void>() : ChatExists();
}

Result<InteractionId> MemoryInteractionStore::ReserveInteraction(const ChatId& chat) {
  const MutexLock lock(mutex_);
  return InteractionId::FromNumber(FindOrCreate(chat).next_number++);
}

Result<void> MemoryInteractionStore::SaveInteraction(const Interaction& interaction) {
  const MutexLock lock(mutex_);
  const auto known = Find(interaction.chat_id);
  if (interaction.parent_id && (!known || !(*known)->interactions.contains(*interaction.parent_id))) {
    return NoSuchParent();
  }
  StoredChat& chat = FindOrCreate(interaction.chat_id);
  const auto [stored, is_new] = chat.interactions.try_emplace(interaction.id, interaction);
  if (!is_new && stored->second == interaction) return {};
  if (!is_new) return Fail(Reason::kInteractionExists, "another interaction is stored under this id");
  AddToIndex(chat.index, interaction, /*digest=*/{});
  chat.next_number = std::max(chat.next_number, interaction.id.number() + 1);
  return {};
}

Result<std::vector<QueuedMessage>> MemoryInteractionStore::ReadQueue(const ChatId& chat) {
  const MutexLock lock(mutex_);
  const auto found = chats_.find(chat);
  if (found == chats_.end()) return std::vector<QueuedMessage>();
  return found->second.queue;
}

Result<void> MemoryInteractionStore::WriteQueue(const ChatId& chat, const std::vector<QueuedMessage>& messages) {
  const MutexLock lock(mutex_);
  if (const auto found = chats_.find(chat); found != chats_.end()) found->second.queue = messages;
  return {};
}

Result<Interaction> MemoryInteractionStore::LoadInteraction(const ChatId& chat, InteractionId id) {
  const MutexLock lock(mutex_);
  const auto found = TRY(Find(chat));
  const auto interaction = found->interactions.find(id);
  if (interaction == found->interactions.end()) return NoSuchInteraction();
  return interaction->second;
}

Result<Chat> MemoryInteractionStore::LoadChat(const ChatId& chat) {
  const MutexLock lock(mutex_);
  const auto found = TRY(Find(chat));
  Chat result{.summary = found->index.summary, .interactions = {}, .damaged = {}};
  for (const auto& [id, interaction] : found->interactions) result.interactions.push_back(interaction);
  return result;
}

Result<ChatSummary> MemoryInteractionStore::LoadSummary(const ChatId& chat) {
  const MutexLock lock(mutex_);
  return Find(chat).map([](const StoredChat* found) { return found->index.summary; });
}

Result<std::optional<AgentState>> MemoryInteractionStore::LoadFinalState(const ChatId& chat, InteractionId id) {
  return LoadInteraction(chat, id).map(
      [](Interaction interaction) { return std::move(interaction.final_agent_state); });
}

Result<std::optional<AgentState>> MemoryInteractionStore::LoadPreviousState(const ChatId& chat, InteractionId id) {
  auto interaction = TRY(LoadInteraction(chat, id));
  if (!interaction.parent_id) return std::optional<AgentState>();
  return LoadInteraction(chat, *interaction.parent_id).map([](Interaction parent) { return parent.final_agent_state; });
}

std::shared_ptr<ChatList> MemoryInteractionStore::List() {
  return std::make_shared<ChatList>(ChatList::Source{.list = [this]() -> Result<std::vector<ChatVersion>> {
                                                       const MutexLock lock(mutex_);
                                                       std::vector<ChatVersion> chats;
                                                       for (const auto& [id, chat] : chats_) chats.emplace_back(id);
                                                       return chats;
                                                     },
                                                     .load = [this](const ChatId& chat) { return LoadSummary(chat); }});
}

Result<ChatSummary> MemoryInteractionStore::ChangeIndex(const ChatId& chat, bool, const IndexChange& change) {
  const MutexLock lock(mutex_);
  const auto found = TRY(Find(chat));
  TRY(change(found->index));
  return found->index.summary;
}

Result<IncomingChat> MemoryInteractionStore::CopyOfBranch(const ChatId& source, InteractionId last, const ChatId& chat,
                                                          const std::optional<std::string>& title) {
  IncomingChat copy = TRY(CopyUpTo(*this, source, last, chat, title));
  for (std::optional<InteractionId> id = last; id; id = TRY(LoadInteraction(source, *id)).parent_id) {
    copy.interactions.insert(copy.interactions.begin(), *id);
  }
  return copy;
}

Result<ChatSummary> MemoryInteractionStore::AddWhole(const IncomingChat& chat) {
  StoredChat stored{.index = NewIndex(chat.summary.id), .interactions = {}, .queue = chat.queue};
  for (const InteractionId id : chat.interactions) {
    auto loaded = TRY(chat.load(id));
    AddToIndex(stored.index, loaded, /*digest=*/{});
    stored.interactions.emplace(id, std::move(loaded));
    stored.next_number = id.number() + 1;
  }
  TakeSummary(stored.index, chat.summary);
  const MutexLock lock(mutex_);
  const auto [place, is_new] = chats_.emplace(chat.summary.id, std::move(stored));
  if (!is_new) return ChatExists();
  return place->second.index.summary;
}

Result<void> MemoryInteractionStore::MoveToTrash(const ChatId& chat, const std::vector<InteractionId>& interactions) {
  const MutexLock lock(mutex_);
  const auto found = TRY(Find(chat));
  for (const InteractionId id : interactions) found->interactions.erase(id);
  return {};
}

Result<void> MemoryInteractionStore::DeleteChat(const ChatId& chat) {
  const MutexLock lock(mutex_);
  if (chats_.erase(chat) == 0) return NoSuchChat();
  return {};
}

}  // namespace reprise
