#include "store/store_core.h"

#include "base/try.h"
#include "domain/codec.h"
#include "store/store_errors.h"

namespace reprise {

Result<ChatSummary> StoreCore::CreateChat(const ChatId& chat, const ChatSettings& settings) {
  TRY(CheckWritable());
  ChatIndex index = NewIndex(chat);
  Apply(settings, index.summary);
  TRY(AddEmpty(index));
  return std::move(index.summary);
}

Result<ChatSummary> StoreCore::ChangeChat(const ChatId& chat, const ChatSettings& settings) {
  TRY(CheckWritable());
  return ChangeIndex(chat, /*while_running=*/true, [&](ChatIndex& index) -> Result<void> {
    ApplySettings(index, settings);
    return {};
  });
}

Result<ChatSummary> StoreCore::MoveHead(const ChatId& chat, InteractionId head) {
  TRY(CheckWritable());
  // A chat must not end at an unreadable interaction. (A stored one never changes, so this needs no lock.)
  const auto interaction = TRY(LoadInteraction(chat, head));
  return ChangeIndex(chat, /*while_running=*/false, [&](ChatIndex& index) -> Result<void> {
    if (head.number() > index.last) return NoSuchInteraction();  // a newer chat of this name
    SetHead(index, interaction);
    return {};
  });
}

Result<ChatSummary> StoreCore::ForkChat(const ChatId& source, InteractionId last, const ChatId& chat,
                                        const std::optional<std::string>& title) {
  TRY(CheckWritable());
  return AddWhole(TRY(CopyOfBranch(source, last, chat, title)));
}

Result<ChatSummary> StoreCore::ImportChat(const IncomingChat& chat) {
  TRY(CheckWritable());
  return AddWhole(chat);
}

Result<std::vector<InteractionId>> StoreCore::RemoveBranch(const ChatId& chat, InteractionId from) {
  TRY(CheckWritable());
  const Chat whole = TRY(LoadChat(chat));
  RemovedBranch removed = TRY(BranchToRemove(whole, from));
  // First the index stops naming them. If the process ends here, they are still superseded and can be removed again.
  TRY(ChangeIndex(chat, /*while_running=*/false, [&](ChatIndex& index) -> Result<void> {
    for (const InteractionId id : removed.interactions) index.leaves.erase(id.number());
    if (!removed.new_leaf) return {};
    index.leaves.insert_or_assign(removed.new_leaf->number(), TRY(ReadDigest(chat, *removed.new_leaf)));
    return {};
  }));
  TRY(MoveToTrash(chat, removed.interactions));
  return std::move(removed.interactions);
}

}  // namespace reprise
