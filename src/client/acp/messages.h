#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "reprise/event.h"
#include "reprise/result.h"

namespace reprise::acp {

// A file that came with a prompt.
struct PromptFile {
  std::string name, bytes;
};

// A user's message: the blocks of a session/prompt as a message of a chat.
struct Prompt {
  std::string text;
  std::vector<PromptFile> files;
};

// `blocks`: the request's "prompt". `workspace`: files in it get the names that the agent's tools use. kInvalidArgument
// names the wrong block.
Result<Prompt> ReadPrompt(const Json& blocks, const std::string& workspace);

// Translates a run's questions into requests to an ACP client, and the client's answers into bodies for the server.

// The "options" of a request for permission.
Json PermissionOptions(const event::ApprovalRequired& asked);
// The body of the answer (POST .../approve) for one of these options; nullopt if there is no such option.
std::optional<Json> ApprovalAnswer(const event::ApprovalRequired& asked, const std::string& option_id);

struct FormAbilities {
  bool form = false, url = false;
};
// The parameters of an elicitation/create, without the session; nullopt if the client cannot show this.
std::optional<Json> Elicitation(const event::InputRequired& asked, FormAbilities abilities);
// The body of the answer (POST .../respond) for the result of an elicitation.
Json InputAnswer(const event::InputRequired& asked, const Json& result);

// For clients without forms: the options of a question with fixed answers, which is asked as a request for permission.
// Empty if it is not such a question.
Json ChoiceOptions(const event::InputRequired& asked);
std::optional<Json> ChoiceAnswer(const event::InputRequired& asked, const std::string& option_id);

// For clients without forms: the question as text; the user's next message is the answer.
std::string QuestionText(const event::InputRequired& asked);
// The body of the answer for the user's message. kInvalidArgument: the message says what would be valid.
Result<Json> TextAnswer(const event::InputRequired& asked, const std::string& text);

}  // namespace reprise::acp
