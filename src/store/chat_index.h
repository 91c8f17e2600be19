#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "reprise/interaction.h"
#include "reprise/result.h"

namespace reprise {

// What chat.json holds: the summary, and enough of the tree of interactions to notice when one is gone or replaced. It
// may lag behind the interaction files: every file with a number above `last` is newer than it.
struct ChatIndex {
  ChatSummary summary;
  std::uint32_t last = 0;                         // the highest number it knows; 0: none
  std::map<std::uint32_t, std::string> leaves{};  // digests of the interactions that are nobody's parent
};

// Puts a stored interaction on top: it becomes the head and a leaf, and its parent no longer is one. An interaction
// older than what is known keeps the time of the last change.
void AddToIndex(ChatIndex& index, const Interaction& interaction, std::string digest);

std::string ChatIndexToJson(const ChatIndex& index);
// kCorruption: reason "integrity_version" for another schema, "integrity_auth" for anything else that is wrong.
Result<ChatIndex> ChatIndexFromJson(const ChatId& chat, std::string_view text);

}  // namespace reprise
