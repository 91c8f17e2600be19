#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "cli/command_line.h"
#include "reprise/interaction_store.h"

namespace reprise {

// The stored chats for commands that only look: opened without the lock, so that a server may be running meanwhile.
class ChatReader {
 public:
  // kNotFound if there is no data folder, kForbidden if there is no key file.
  static Result<ChatReader> Open(const CommandLine& line, const Environment& environment);

  InteractionStore& store() { return *store_; }

 private:
  explicit ChatReader(std::unique_ptr<InteractionStore> store) : store_(std::move(store)) {}

  std::unique_ptr<InteractionStore> store_;
};

// CHAT or CHAT/INTERACTION.
struct RecordReference {
  ChatId chat;
  std::optional<InteractionId> interaction;
};
Result<RecordReference> ParseReference(std::string_view text);

// The numbers on the head's branch.
std::set<InteractionId> HeadBranch(const Chat& chat);

// A chat with its interactions, as GET /chats/{chat_id}?branches=all shows it.
Json ChatToJson(const Chat& chat, bool all_branches);

// One line for each interaction that is stored but cannot be read.
void ComplainOfDamage(const Chat& chat);

}  // namespace reprise
