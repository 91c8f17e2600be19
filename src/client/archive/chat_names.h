#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/file_system.h"
#include "reprise/ids.h"
#include "reprise/interaction_store.h"
#include "reprise/result.h"

// How people name chats: by the id, by the title, or by the beginning of either if no other chat begins so. An exact id
// beats an exact title, which beats a beginning. The case of titles does not count.

namespace reprise {

struct NamedChat {
  std::string id, title;  // the title is empty if it is unknown
};

// The chats among which a name is looked up. The functions may refer to their maker.
struct ChatNames {
  std::function<Result<bool>(const ChatId& chat)> has;  // true also for a damaged chat
  std::function<Result<std::vector<NamedChat>>()> all;  // called unless the text is the id of a chat
  std::string where;                                    // for messages: "in /home/me/chats"
  std::string hint = "`reprise ls` lists them";         // likewise
  bool takes_parts = false;                             // a part of a title will do
};

// The chats of a store, which must outlive the names, and the chats of a data folder by their ids alone.
ChatNames NamesIn(InteractionStore& store, const std::string& where);
ChatNames IdsIn(const std::string& root, FileSystem& file_system, const std::string& where);

// The chat that `text` names. kNotFound if there is none, kConflict (the message lists them) if there are several,
// kInvalidArgument if there is none and `text` cannot be an id, and the failures of `has` and `all`.
Result<ChatId> FindChat(std::string_view text, const ChatNames& names);

// CHAT or CHAT/INTERACTION.
struct RecordReference {
  ChatId chat;
  std::optional<InteractionId> interaction;
};
// The same for a chat or one of its interactions, which need not exist.
Result<RecordReference> FindRecord(std::string_view text, const ChatNames& names);

// Reads exact ids. kInvalidArgument; the message names `text`.
Result<RecordReference> ParseReference(std::string_view text);

// kNotFound, with the nearest of the `known` ids.
Error NoSuchChat(const ChatId& chat, const ChatNames& names, std::span<const std::string> known);

}  // namespace reprise
