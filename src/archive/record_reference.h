#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reprise/ids.h"
#include "reprise/interaction_store.h"
#include "reprise/result.h"

// References of people to stored chats, and the errors for unknown ones.
namespace reprise {

// CHAT or CHAT/INTERACTION.
struct RecordReference {
  ChatId chat;
  std::optional<InteractionId> interaction;
};
// `error`, but for kNotFound a message that names the missing record, the data folder, and a command that lists it.
Error NotThere(Error error, const RecordReference& what, const std::string& data_dir);
// The same for a chat, if only the chats `known` exist; `where` is a folder or a server.
Error NoSuchChat(const ChatId& chat, const std::string& where, std::span<const std::string> known);
// `chat` if it is in `known`, else the only known chat whose id begins with it; `chat` if there are several.
ChatId WithUniqueBeginning(const ChatId& chat, std::span<const ChatId> known);
Error NoDataFolder(const std::string& data_dir);
// kInvalidArgument; the message names `text`.
Result<RecordReference> ParseReference(std::string_view text);

bool HasChat(InteractionStore& store, const ChatId& chat);

}  // namespace reprise
