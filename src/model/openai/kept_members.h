#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.h"
#include "reprise/message.h"

namespace reprise {

// Members that only the provider understands: reasoning that it wants back in the next request (DeepSeek's
// `reasoning_content`, https://api-docs.deepseek.com/guides/thinking_mode; vLLM's `reasoning`; OpenRouter's
// `reasoning_details`, https://openrouter.ai/docs/guides/best-practices/reasoning-tokens), signatures of thoughts
// (Gemini's `extra_content`, https://ai.google.dev/gemini-api/docs/thought-signatures), and future members. Their
// meaning is unknown, so they are kept unchanged, and one rule joins the pieces of a stream.

// True for the members of an assistant message, of a tool call and of its `function` that chat completions define
// (https://platform.openai.com/docs/api-reference/chat), and for those that describe only the response. They are not
// kept, so a request never repeats them.
bool IsKnownMessageMember(std::string_view name);
bool IsKnownCallMember(std::string_view name);
bool IsKnownFunctionMember(std::string_view name);

// Approximate bytes that keeping a value takes; kTooMuch for a value that is not kept (an object with very many
// members).
inline constexpr std::size_t kTooMuch = std::size_t{1} << 40;
std::size_t CostOf(simdjson::dom::element value);

// Converts a value unchanged.
Json ToJson(simdjson::dom::element value);

// Adds the next piece of the member `name`: texts are joined, objects merged member by member, and anything else is
// replaced. Items are appended to an array; an item with the `index` of an earlier one continues it, unless their
// `type` or `id` differ. Names (`type`, `id`, `format`) and repeated signatures are not joined. Null is ignored.
// REQUIRES: its cost is not kTooMuch.
void MergeMember(Json& object, std::string_view name, simdjson::dom::element value);

// The member of the provider's extras (see request_parts.h) that holds the items of a Responses API answer, in order
// and unchanged:
//
//   "items": [{"type":"reasoning","id":"rs_1","summary":[...],"encrypted_content":"..."},
//             {"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"..."}},
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
// the message's text and calls, else its text and calls. An id of an item of another form than this interface's own is
// left out. `ways`: items that are sent; reasoning and citations of a
// search that is not sent are left out with it.
struct KeptWays {
  bool items = true, reasoning = true, searches = true;
};
void AppendAssistantItems(std::string& out, const Message& message, std::string_view provider, const KeptWays& ways);

}  // namespace reprise
