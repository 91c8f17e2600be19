#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "reprise/message.h"

namespace reprise {

// The member of what is kept for the provider (see provider_extras.h) that has the items of an answer of the Responses
// API in their order, as they came:
//
//   "items": [{"type":"reasoning","id":"rs_1","summary":[...],"encrypted_content":"..."},
//             {"type":"message","id":"msg_1","status":"completed","content":[{"type":"output_text","bytes":12}]},
//             {"type":"function_call","id":"fc_1","status":"completed"}]
//
// Texts, and the ids, names and arguments of calls, are in the message itself: a part says how many bytes of its
// content stand here, and a call that it is the next of its calls.
inline constexpr std::string_view kResponseItems = "items";

// What is kept of an item of an answer (https://platform.openai.com/docs/api-reference/responses/object); null for one
// of which nothing is to be sent back.
Json KeptItem(const Json& item);

// The id of a call as this interface takes it: it refuses longer ones.
std::string SentCallId(const std::string& id);

// Appends the input items for an assistant message, separated and ended by commas: those that `provider` has kept if
// they fit the message's text and calls, else its text and its calls. `with_reasoning`: what it has thought, too.
void AppendAssistantItems(std::string& out, const Message& message, std::string_view provider, bool with_reasoning);

}  // namespace reprise
