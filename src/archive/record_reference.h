#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reprise/ids.h"
#include "reprise/interaction_store.h"
#include "reprise/result.h"

// What a person names of the stored chats, and what they are told if it is not there.
namespace reprise {

// CHAT or CHAT/INTERACTION.
struct RecordReference {
  ChatId chat;
  std::optional<InteractionId> interaction;
};
// `error`, or if it is kNotFound one that names what is not there in this data folder, and how to find what is.
Error NotThere(Error error, const RecordReference& what, const std::string& data_dir);
// The same of a chat, where the chats `known` are; `where` is a folder or a server.
Error NoSuchChat(const ChatId& chat, const std::string& where, std::span<const std::string> known);
// `chat`, or if it is not among `known` the one of them that begins so; where several do, `chat`.
ChatId WithUniqueBeginning(const ChatId& chat, std::span<const ChatId> known);
Error NoDataFolder(const std::string& data_dir);
// kInvalidArgument: the message names `text`.
Result<RecordReference> ParseReference(std::string_view text);

bool HasChat(InteractionStore& store, const ChatId& chat);

}  // namespace reprise
