#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string_view>

#include "base/json.h"

namespace reprise {

// Members that belong to nobody but the provider: reasoning that it wants back in the next request (DeepSeek's
// `reasoning_content`, https://api-docs.deepseek.com/guides/thinking_mode; vLLM's `reasoning`; OpenRouter's
// `reasoning_details`, https://openrouter.ai/docs/guides/best-practices/reasoning-tokens), signatures of thoughts
// (Gemini's `extra_content`, https://ai.google.dev/gemini-api/docs/thought-signatures), and what there will be. Nothing
// is known of them, so they are kept as they come and put together from the pieces of a stream by one rule.

// True of the members of an assistant message, of a tool call and of its `function` that chat completions define
// (https://platform.openai.com/docs/api-reference/chat), and of those that tell about the response alone. They are not
// kept, and a request never has them twice.
bool IsKnownMessageMember(std::string_view name);
bool IsKnownCallMember(std::string_view name);
bool IsKnownFunctionMember(std::string_view name);

// What keeping a value takes, in bytes, about; kTooMuch for one that is not kept (an object of very many members).
inline constexpr std::size_t kTooMuch = std::size_t{1} << 40;
std::size_t CostOf(simdjson::dom::element value);

// A value as it is.
Json ToJson(simdjson::dom::element value);

// Adds the next piece of the member `name`: texts are joined, objects merged member by member, and everything else is
// replaced. Items are added to an array; one with an `index` continues the item that has the same, if their `type` and
// `id` are not different ones. What names a thing (`type`, `id`, `format`) is not joined, nor is a signature that comes
// again. Null says nothing.
// REQUIRES: its cost is not too much.
void MergeMember(Json& object, std::string_view name, simdjson::dom::element value);

}  // namespace reprise
