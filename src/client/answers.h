#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "client/server_link.h"
#include "reprise/event.h"
#include "reprise/question_store.h"
#include "reprise/result.h"

// What users type in a conversation: commands, messages and answers to a run's questions.

namespace reprise {

struct TypedLine {
  std::string command{};  // "/undo"; empty: the line is a message
  std::string text{};     // the message, or the command's arguments
};
// "//TEXT" is the message "/TEXT".
TypedLine ParseTyped(const std::string& line);

// A message that the folder's command or skill stands for.
struct ExpandedCommand {
  std::string message, model;  // an empty model: the client's own
};
// `query` names the folder ("?workspace=..."; empty: the server's). nullopt: the folder has no such command.
Result<std::optional<ExpandedCommand>> ExpandFolderCommand(ServerLink& link, const std::string& query,
                                                           const TypedLine& typed);
// "?workspace=..." for the folder of this client's chats.
std::string FolderQuery(const ServerLink& link);

// The request body that answers an approval, for the arguments as they were shown.
Json AnswerTo(const event::ApprovalRequired& asked, bool approved);
// The request body that answers a tool's question; nullopt: the user declines.
Json AnswerTo(const event::InputRequired& asked, std::optional<Json> response);

struct AnswerOutcome {
  enum class Became {
    kTaken,
    kStale,    // the call's terms have changed, so the run asks again
    kTooLate,  // the question no longer needs an answer
    kRefused,  // the answer was invalid; the user may give another one
    kLost,     // no server took the answer
  };
  Became became = Became::kTaken;
  std::string why{};  // for the user; empty if the answer was taken

  bool is_settled() const { return became != Became::kRefused && became != Became::kLost; }
};
// Sends the answer, and again if the connection broke, because the server counts an answer only once.
AnswerOutcome GiveAnswer(ServerLink& link, const PendingQuestion& question, const Json& body);

// The full name of the model that a person's `text` names, of those in `models` (the answer of GET /models): a listed
// name; any name with a listed provider before the slash, which may accept models that it does not list; or a part of
// the name, in any case, if only one model has it. kConflict if several have it (the message lists them), kNotFound.
// The message ends with `hint`: "/model lists them".
Result<std::string> FindModel(const std::string& text, const Json& models, const std::string& hint);

// What a paste behind the text `before` stands for: in a message, pictures and documents that were dropped on the
// terminal as `@FILE`; each other text as it is.
std::string NamesOfDropped(const std::string& before, const std::string& pasted);

}  // namespace reprise
