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

// Whole chats as plain JSON, as `reprise export` or another program writes it after the specification, and as POST
// /import takes it (schemas/import_request). Missing members are filled in: numbers for interactions with other names,
// parents (the interaction before), event numbers and times, and final states (from the parent's state and the
// interaction's events).
namespace reprise {

// The greatest depth of the JSON of a whole chat.
inline constexpr int kMaxChatDepth = kMaxJsonDepth + 20;

// A chat that was read from JSON.
struct ForeignChat {
  std::string name;  // its name in the document; need not be a chat id
  std::string title{};
  std::optional<Timestamp> created_at{}, updated_at{};
  std::optional<InteractionId> head{};  // nullopt if there are no interactions
  // Finished, in rising order, parents first; the caller sets `chat_id`. A state that begins with its parent's, as most
  // do, holds only the messages it adds, because whole states would take space with the square of the chat's length.
  std::vector<Interaction> interactions{};
  std::map<InteractionId, std::size_t> kept_messages{};  // how many of the parent's messages come first
  std::vector<StoredFile> files{};                       // only from our own exports
  std::vector<Blob> blobs{};                             // likewise
  std::vector<std::string> notes{};                      // for people: what was filled in or left out
  // For people: the interactions that it names and lacks. A document of one interaction lacks none.
  std::vector<std::string> gaps{};

  // An interaction with its whole state.
  Interaction Whole(InteractionId id) const;
};

// Reads ISO 8601 as programs write it: a space for the T, any number of decimals, an offset as the zone, or none (UTC).
std::optional<Timestamp> ParseForeignTime(std::string text);

// An interaction as it was found in the document.
struct ForeignInteraction {
  std::string where;  // for messages; its file, for example
  std::string name;   // its id, in any form
  Json json;          // an object
};

// Adds the interactions of a chat, and its title, times and head from `about`, an object. kInvalidArgument (reason
// "invalid_document") if anything is unusable; the message names place and fault, and holds no text of the chat.
Result<void> ReadInteractions(std::vector<ForeignInteraction> documents, const Json& about, ForeignChat& chat);

// Adds a file from anywhere; its name becomes one line without a path. Fails like ReadInteractions.
Result<void> AddForeignFile(StoredFile file, const std::string& where, ForeignChat& chat);

// Reads a chat, or a single interaction, from one JSON document. `where` names it in messages. Fails like
// ReadInteractions.
Result<ForeignChat> ReadChatDocument(Json document, const std::string& where);
// Adds a note if interactions name files that the chat does not have. Called when all files were added.
void NoteMissingFiles(ForeignChat& chat);
// Writes a document that ReadChatDocument reads without filling in anything; its size is linear in the chat's text.
Json ToChatDocument(const ForeignChat& chat);

// Prepares the chat for a store, under this name.
IncomingChat ToIncomingChat(const ChatId& name, ForeignChat chat);
// Copies the chat under another name.
IncomingChat RenamedTo(const ChatId& name, const IncomingChat& chat);
// Appends -2, -3, ... to the name, which is cut if too long. REQUIRES: number > 1.
ChatId NumberedName(const ChatId& name, int number);

}  // namespace reprise
