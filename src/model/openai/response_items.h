#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "reprise/message.h"

namespace reprise {

// The member of the provider's extras (see provider_extras.h) that holds the items of a Responses API answer, in order
// and unchanged:
//
//   "items": [{"type":"reasoning","id":"rs_1","summary":[...],"encrypted_content":"..."},
//             {"type":"message","id":"msg_1","status":"completed","content":[{"type":"output_text","bytes":12}]},
//             {"type":"function_call","id":"fc_1","status":"completed"}]
//
// The message itself holds the texts, and the ids, names and arguments of calls: a part gives its number of bytes of
// the content, and a call refers to the next of the message's calls.
inline constexpr std::string_view kResponseItems = "items";

// The part of an answer's item to keep (https://platform.openai.com/docs/api-reference/responses/object); null if
// nothing of it must be sent back.
Json KeptItem(const Json& item);

// A call's id as this interface accepts it: it rejects longer ones.
std::string SentCallId(const std::string& id);

// Appends the input items for an assistant message, each followed by a comma: the items kept for `provider` if they fit
// the message's text and calls, else its text and calls. `with_reasoning`: includes its reasoning.
void AppendAssistantItems(std::string& out, const Message& message, std::string_view provider, bool with_reasoning);

}  // namespace reprise
