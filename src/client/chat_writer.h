#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/options.h"
#include "base/json.h"
#include "base/system.h"
#include "client/archive/chat_names.h"
#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// Changes stored chats: through the server that uses their folder (client/server_access), or, if there is none, in the
// folder itself, whose lock it holds. Returns the JSON of the HTTP interface. For one thread.
//
// In a folder, functions fail as the store does; through a server with kUnavailable, and the server's code as `reason`.
// A missing chat or interaction is kNotFound in both, with a message that names it and the place.
class ChatWriter {
 public:
  // `url` as for OpenServer. If there is no server: kNotFound without a data folder, kUnavailable with a database.
  static Result<std::unique_ptr<ChatWriter>> Open(const Flags& flags, const std::string& url,
                                                  const Environment& environment);
  virtual ~ChatWriter() = default;

  virtual Result<void> Delete(const ChatId& chat) = 0;            // ends its run and moves it to the trash
  virtual Result<Json> ListTrash() = 0;                           // schemas/trash
  virtual Result<Json> Restore(const std::string& trash_id) = 0;  // schemas/chat_summary
  virtual Result<Json> Rename(const ChatId& chat, const std::string& title) = 0;  // schemas/chat_summary
  // Copies the branch up to `interaction` (default: the head) to chat `as` (empty: a new id). Gives a chat_list_entry.
  virtual Result<Json> Fork(const ChatId& chat, std::optional<InteractionId> interaction, const std::string& as) = 0;
  virtual ChatNames names() = 0;  // must not outlive this
  // The place of the chats, for messages: the server's URL or the folder.
  virtual std::string where() const = 0;
};

}  // namespace reprise
