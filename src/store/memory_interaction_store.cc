#include "store/memory_interaction_store.h"

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "domain/codec.h"
#include "store/chat_index.h"
#include "store/store_errors.h"

namespace reprise {

Result<MemoryInteractionStore::StoredChat*> MemoryInteractionStore::Find(const ChatId& chat) {
  const auto found = chats_.find(chat);
  if (found == chats_.end()) return Fail(ErrorCode::kNotFound, "no such chat");
  return &found->second;
}

MemoryInteractionStore::StoredChat& MemoryInteractionStore::FindOrCreate(const ChatId& chat) {
  const Timestamp now = Now();
  return chats_
      .try_emplace(chat,
                   StoredChat{.summary = {.id = chat, .title = {}, .created_at = now, .updated_at = now, .head = {}},
                              .interactions = {}})
      .first->second;
}

Result<ChatSummary> MemoryInteractionStore::CreateChat(const ChatId& chat, const std::string& title) {
  const MutexLock lock(mutex_);
  if (chats_.contains(chat)) return Fail(Reason::kChatExists, "there is a chat of this name already");
  ChatSummary& summary = FindOrCreate(chat).summary;
  summary.title = title;
  return summary;
}

Result<InteractionId> MemoryInteractionStore::ReserveInteraction(const ChatId& chat) {
  const MutexLock lock(mutex_);
  return InteractionId::FromNumber(FindOrCreate(chat).next_number++);
}

Result<void> MemoryInteractionStore::SaveInteraction(const Interaction& interaction) {
  const MutexLock lock(mutex_);
  const auto known = Find(interaction.chat_id);
  if (interaction.parent_id && (!known || !(*known)->interactions.contains(*interaction.parent_id))) {
    return Fail(ErrorCode::kNotFound, "the parent interaction is not in this chat");
  }
  StoredChat& chat = FindOrCreate(interaction.chat_id);
  const auto [stored, is_new] = chat.interactions.try_emplace(interaction.id, interaction);
  if (!is_new && stored->second == interaction) return {};
  if (!is_new) return Fail(Reason::kInteractionExists, "another interaction is stored under this id");
  ChatSummary& summary = chat.summary;
  if (summary.title.empty()) summary.title = TitleFromMessage(interaction.user_message);
  summary.created_at = std::min(summary.created_at, interaction.created_at);
  summary.updated_at = std::max(summary.updated_at, interaction.completed_at.value_or(interaction.created_at));
  summary.head = interaction.id;
  summary.head_status = interaction.status;
  if (!summary.tokens) summary.tokens = 0;
  AddUsage(summary, interaction);
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
  Chat result{.summary = found->summary, .interactions = {}, .damaged = {}};
  for (const auto& [id, interaction] : found->interactions) result.interactions.push_back(interaction);
  return result;
}

Result<ChatSummary> MemoryInteractionStore::LoadSummary(const ChatId& chat) {
  const MutexLock lock(mutex_);
  return Find(chat).map([](const StoredChat* found) { return found->summary; });
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

Result<std::vector<ChatSummary>> MemoryInteractionStore::ListChats() {
  const MutexLock lock(mutex_);
  std::vector<ChatSummary> summaries;
  for (const auto& [id, chat] : chats_) summaries.push_back(chat.summary);
  std::sort(summaries.begin(), summaries.end(), [](const ChatSummary& a, const ChatSummary& b) {
    return a.updated_at != b.updated_at ? a.updated_at > b.updated_at : a.id < b.id;
  });
  return summaries;
}

Result<ChatSummary> MemoryInteractionStore::ChangeChat(const ChatId& chat, const ChatSettings& settings) {
  const MutexLock lock(mutex_);
  const auto found = TRY(Find(chat));
  ChatSummary& summary = found->summary;
  Apply(settings, summary);
  summary.updated_at = std::max(summary.updated_at, Now());
  return summary;
}

Result<ChatSummary> MemoryInteractionStore::MoveHead(const ChatId& chat, InteractionId head) {
  const MutexLock lock(mutex_);
  const auto found = TRY(Find(chat));
  if (!found->interactions.contains(head)) return NoSuchInteraction();
  ChatSummary& summary = found->summary;
  summary.head = head;
  summary.head_status = found->interactions.at(head).status;
  summary.updated_at = std::max(summary.updated_at, Now());
  return summary;
}

Result<ChatSummary> MemoryInteractionStore::ForkChat(const ChatId& source, InteractionId last, const ChatId& chat,
                                                     const std::optional<std::string>& title) {
  const MutexLock lock(mutex_);
  const auto found = TRY(Find(source));
  const StoredChat& original = *found;
  if (!original.interactions.contains(last)) return NoSuchInteraction();
  if (chats_.contains(chat)) return Fail(Reason::kChatExists, "there is a chat of this name already");
  const Timestamp now = Now();
  StoredChat copy{.summary = {.id = chat,
                              .title = title.value_or(original.summary.title),
                              .created_at = now,
                              .updated_at = now,
                              .head = last,
                              .head_status = original.interactions.at(last).status,
                              .tokens = 0,
                              .forked_from = InteractionRef{source, last}},
                  .interactions = {}};
  TakeSettings(original.summary, copy.summary);
  for (std::optional<InteractionId> id = last; id; id = copy.interactions.at(*id).parent_id) {
    Interaction& copied = copy.interactions.emplace(*id, original.interactions.at(*id)).first->second;
    copied.chat_id = chat;
    if (copied.record) copied.record->request = std::nullopt;
  }
  for (const auto& [id, interaction] : copy.interactions) AddUsage(copy.summary, interaction);
  copy.next_number = last.number() + 1;
  return chats_.emplace(chat, std::move(copy)).first->second.summary;
}

Result<ChatSummary> MemoryInteractionStore::ImportChat(const IncomingChat& chat) {
  StoredChat stored{.summary = chat.summary, .interactions = {}, .queue = chat.queue};
  stored.summary.model.clear();
  stored.summary.tokens = 0;
  for (const InteractionId id : chat.interactions) {
    auto loaded = TRY(chat.load(id));
    AddUsage(stored.summary, loaded);
    stored.interactions.emplace(id, std::move(loaded));
    stored.next_number = id.number() + 1;
  }
  const MutexLock lock(mutex_);
  const auto [place, is_new] = chats_.emplace(chat.summary.id, std::move(stored));
  if (!is_new) return Fail(Reason::kChatExists, "there is a chat of this name already");
  return place->second.summary;
}

Result<std::vector<InteractionId>> MemoryInteractionStore::RemoveBranch(const ChatId& chat, InteractionId from) {
  const Chat whole = TRY(LoadChat(chat));
  RemovedBranch removed = TRY(BranchToRemove(whole, from));
  const MutexLock lock(mutex_);
  const auto found = TRY(Find(chat));
  for (const InteractionId id : removed.interactions) found->interactions.erase(id);
  return std::move(removed.interactions);
}

Result<void> MemoryInteractionStore::DeleteChat(const ChatId& chat) {
  const MutexLock lock(mutex_);
  if (chats_.erase(chat) == 0) return Fail(ErrorCode::kNotFound, "no such chat");
  return {};
}

}  // namespace reprise
