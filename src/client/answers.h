#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "client/server_link.h"
#include "reprise/event.h"
#include "reprise/question_store.h"

// What people type in a conversation: commands, messages, and the answers to what a run asks.
namespace reprise {

struct TypedLine {
  std::string command{};  // "/undo"; empty: it is a message
  std::string text{};     // that, or what stands behind the command
};
// "//TEXT" is the message "/TEXT".
TypedLine ParseTyped(const std::string& line);

// The body of an answer to a call, as it was shown.
Json AnswerTo(const event::ApprovalRequired& asked, bool approved);
// That of an answer to a question of a tool; nullopt: it is declined.
Json AnswerTo(const event::InputRequired& asked, std::optional<Json> response);

struct AnswerOutcome {
  enum class Became {
    kTaken,
    kStale,    // the terms of the call have changed: the run asks about it again
    kTooLate,  // the question needs no answer any more
    kRefused,  // it can be answered in another way
    kLost,     // no server has taken it
  };
  Became became = Became::kTaken;
  std::string why{};  // for the person; empty: it was taken

  bool is_settled() const { return became != Became::kRefused && became != Became::kLost; }
};
// An answer counts once, so one that may have been lost on the way is given again.
AnswerOutcome GiveAnswer(ServerLink& link, const PendingQuestion& question, const Json& body);

}  // namespace reprise
