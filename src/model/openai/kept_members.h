#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string_view>

#include "base/json.h"

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

}  // namespace reprise
