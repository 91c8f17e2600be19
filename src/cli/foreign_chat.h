#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reprise/file_store.h"
#include "reprise/interaction.h"
#include "reprise/result.h"

namespace reprise {

// A chat read from plain JSON that `reprise export` wrote, or another program after the specification. What such files
// lack is filled in: numbers for interactions that are called otherwise, parents (the one before), event numbers and
// times, the final state of an interaction that has none (from its parent's and its own events).
struct ForeignChat {
  std::string name;  // what it calls itself; need not be a chat id
  std::string title{};
  std::optional<Timestamp> created_at{}, updated_at{};
  std::optional<InteractionId> head{};      // nullopt: there are no interactions
  std::vector<Interaction> interactions{};  // finished, rising, parents first; `chat_id` is to be set by the caller
  std::vector<StoredFile> files{};          // of our own exports; others have none
  std::vector<std::string> notes{};         // what was filled in or left out that a person should know
};

// Where chats lie in what was named: a chat's folder and a JSON document stand for themselves, another folder for the
// chats in it. kNotFound, kInvalidArgument if it is none of these.
Result<std::vector<std::string>> FindForeignChats(const std::string& path);

// kInvalidArgument if anything in it cannot be used; the message names the file and what is wrong.
Result<ForeignChat> ReadForeignChat(const std::string& path);

}  // namespace reprise
