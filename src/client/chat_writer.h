#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/options.h"
#include "base/json.h"
#include "base/system.h"
#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// Changes stored chats: through the server that uses their folder (client/server_access), or, if there is none, in the
// folder itself with its lock held. Answers are those of the HTTP interface. For one thread.
//
// Failures name the chat and where it was looked for: kNotFound, kConflict, kCorruption and what else the store says;
// kUnavailable if the server does not answer. `reason` is the server's code.
class ChatWriter {
 public:
  // `url` as for OpenServer. kNotFound if there is neither a server nor a data folder.
  static Result<std::unique_ptr<ChatWriter>> Open(const Flags& flags, const std::string& url,
                                                  const Environment& environment);
  virtual ~ChatWriter() = default;

  virtual Result<void> Delete(const ChatId& chat) = 0;            // to the trash; ends a run of it first
  virtual Result<Json> ListTrash() = 0;                           // schemas/trash
  virtual Result<Json> Restore(const std::string& trash_id) = 0;  // schemas/chat_summary
  virtual Result<Json> Rename(const ChatId& chat, const std::string& title) = 0;  // schemas/chat_summary
  // The branch that ends at `interaction`, by default at the chat's head; `as` may be empty. schemas/chat_list_entry
  virtual Result<Json> Fork(const ChatId& chat, std::optional<InteractionId> interaction, const std::string& as) = 0;
  // Where the chats are, for messages.
  virtual std::string where() const = 0;
};

}  // namespace reprise
