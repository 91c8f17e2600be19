// The lists of a data folder's chats.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/logging.h"
#include "base/try.h"
#include "store/file_interaction_store.h"

namespace reprise {

// A hundred thousand chats that are only listed would fill the memory with what a running chat needs. A chat with
// something to repair is loaded as a whole.
Result<ChatSummary> FileInteractionStore::LoadListed(const ChatId& chat) {
  if (FindState(chat)) return LoadSummary(chat);
  auto on_disk = TRY(files_.ReadChat(chat));
  const bool is_plain = on_disk.has_index && !on_disk.index_unreadable && !on_disk.unproven && on_disk.journals.empty();
  if (!is_plain) return LoadSummary(chat);
  return std::move(on_disk.index.summary);
}

Result<std::vector<ChatSummary>> FileInteractionStore::ListChats() {
  if (options_.access == Access::kServer) return list_.All();
  auto chats = files_.ListChats();
  if (!chats && IsNotFound(chats.error()) && options_.access == Access::kFallback) chats.emplace();
  if (!chats) return Fail(std::move(chats.error()));
  std::vector<ChatSummary> summaries;
  for (const ChatId& chat : *chats) {
    auto summary = LoadSummary(chat);
    if (summary) summaries.push_back(*std::move(summary));
  }
  std::ranges::sort(summaries, [](const ChatSummary& a, const ChatSummary& b) {
    return ChatPlace::Of(a).IsBefore(ChatPlace::Of(b));
  });
  return summaries;
}

Result<ChatPage> FileInteractionStore::ListPage(const std::optional<ChatPlace>& after, std::size_t limit) {
  return options_.access == Access::kServer ? list_.Page(after, limit) : InteractionStore::ListPage(after, limit);
}

Result<std::vector<UnreadableChat>> FileInteractionStore::ListUnreadableChats() {
  std::vector<UnreadableChat> unreadable;
  if (options_.access == Access::kServer) {
    unreadable = TRY(list_.Unreadable());
  } else {
    auto chats = files_.ListChats();
    if (!chats && IsNotFound(chats.error()) && options_.access == Access::kFallback) chats.emplace();
    if (!chats) return Fail(std::move(chats.error()));
    std::ranges::sort(*chats);
    for (ChatId& chat : *chats) {
      auto summary = LoadSummary(chat);
      if (summary || IsNotFound(summary.error())) continue;
      unreadable.push_back({std::move(chat), std::move(summary.error())});
    }
  }
  for (const UnreadableChat& each : unreadable) {
    LogError("a chat cannot be listed",
             {{"chat", each.id.str()}, {"reason", each.error.reason}, {"detail", each.error.detail}});
  }
  return unreadable;
}

}  // namespace reprise
