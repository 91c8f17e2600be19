#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "reprise/blob_store.h"
#include "reprise/file_store.h"
#include "reprise/incoming_chat.h"
#include "reprise/interaction.h"
#include "reprise/result.h"

// Whole chats as plain JSON: what `reprise export` writes, or another program after the specification, and what
// POST /import takes (schemas/import_request). What such JSON lacks is filled in: numbers for interactions that are
// called otherwise, parents (the one before), event numbers and times, the final state of an interaction that has none
// (from its parent's and its own events).
namespace reprise {

// How deep the JSON of a whole chat may be.
inline constexpr int kMaxChatDepth = kMaxJsonDepth + 20;

// A chat that was read from JSON.
struct ForeignChat {
  std::string name;  // what it calls itself; need not be a chat id
  std::string title{};
  std::optional<Timestamp> created_at{}, updated_at{};
  std::optional<InteractionId> head{};  // nullopt: there are no interactions
  // Finished, rising, parents first; `chat_id` is to be set by the caller. Of a state that begins with its parent's, as
  // nearly all do, only the messages that it adds: together they would take space with the square of the chat's length.
  std::vector<Interaction> interactions{};
  std::map<InteractionId, std::size_t> kept_messages{};  // so many of the parent's come first; not there: none
  std::vector<StoredFile> files{};                       // of our own exports; others have none
  std::vector<Blob> blobs{};                             // likewise
  std::vector<std::string> notes{};                      // what was filled in or left out that a person should know

  // One of them, with its whole state, which is put together anew.
  Interaction Whole(InteractionId id) const;
};

// An interaction as it was found.
struct ForeignInteraction {
  std::string where;  // for messages: its file, say
  std::string name;   // its id, whatever that looks like
  Json json;          // an object
};

// Adds the interactions of a chat, and what `about`, an object, says of it otherwise: title, times, head.
// kInvalidArgument (reason "invalid_document") if anything cannot be used; the message names where and what is wrong,
// and holds no text of the chat.
Result<void> ReadInteractions(std::vector<ForeignInteraction> documents, const Json& about, ForeignChat& chat);

// Adds a file as it may come from anywhere: its name becomes one line without a path. Failures likewise.
Result<void> AddForeignFile(StoredFile file, const std::string& where, ForeignChat& chat);

// A chat, or an interaction alone, in one JSON document. `where` names it in messages. Failures likewise.
Result<ForeignChat> ReadChatDocument(Json document, const std::string& where);
// What ReadChatDocument reads, with nothing to be filled in; its size grows linearly with what was said.
Json ToChatDocument(const ForeignChat& chat);

// As a store takes it in under this name.
IncomingChat ToIncomingChat(const ChatId& name, ForeignChat chat);
// The same chat under another name.
IncomingChat RenamedTo(const ChatId& name, const IncomingChat& chat);
// The name with -2, -3, ... behind it; cut where it would be too long. REQUIRES: number > 1.
ChatId NumberedName(const ChatId& name, int number);

}  // namespace reprise
