#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "reprise/event.h"
#include "reprise/result.h"

// What a run asks, as a client of ACP is asked it, and what the client's answer says to the server.
namespace reprise::acp {

// The "options" of a request for permission.
Json PermissionOptions(const event::ApprovalRequired& asked);
// The body of the answer (POST .../approve) for an option of these; nullopt: there is no such option.
std::optional<Json> ApprovalAnswer(const event::ApprovalRequired& asked, const std::string& option_id);

struct FormAbilities {
  bool form = false, url = false;
};
// The parameters of an elicitation/create, without the session; nullopt: the client cannot show this.
std::optional<Json> Elicitation(const event::InputRequired& asked, FormAbilities abilities);
// The body of the answer (POST .../respond) that the result of an elicitation is.
Json InputAnswer(const event::InputRequired& asked, const Json& result);

// Without forms: a question with a few answers is asked as one for permission. Empty: it is not such a question.
Json ChoiceOptions(const event::InputRequired& asked);
std::optional<Json> ChoiceAnswer(const event::InputRequired& asked, const std::string& option_id);

// Without forms: what is said to the person, who answers with the next message.
std::string QuestionText(const event::InputRequired& asked);
// The body of the answer that a message is. kInvalidArgument: the words say what would have been right.
Result<Json> TextAnswer(const event::InputRequired& asked, const std::string& text);

}  // namespace reprise::acp
