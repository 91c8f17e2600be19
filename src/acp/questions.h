#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "reprise/result.h"

// What a run asks, as a client of ACP is asked it, and what the client's answer says to the server. `asked` is the data
// of approval_required or input_required.
namespace reprise::acp {

// The "options" of a request for permission.
Json PermissionOptions(const Json& asked);
// The body of the answer (POST .../approve) for an option of these; nullopt: there is no such option.
std::optional<Json> ApprovalAnswer(const Json& asked, const std::string& option_id);

struct FormAbilities {
  bool form = false, url = false;
};
// The parameters of an elicitation/create, without the session; nullopt: the client cannot show this.
std::optional<Json> Elicitation(const Json& asked, FormAbilities abilities);
// The body of the answer (POST .../respond) that the result of an elicitation is.
Json InputAnswer(const Json& asked, const Json& result);

// Without forms: a question with a few answers is asked as one for permission. Empty: it is not such a question.
Json ChoiceOptions(const Json& asked);
std::optional<Json> ChoiceAnswer(const Json& asked, const std::string& option_id);

// Without forms: what is said to the person, who answers with the next message.
std::string QuestionText(const Json& asked);
// The body of the answer that a message is. kInvalidArgument: the words say what would have been right.
Result<Json> TextAnswer(const Json& asked, const std::string& text);

}  // namespace reprise::acp
