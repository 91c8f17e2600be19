#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "reprise/message.h"

namespace reprise {

// The member of Message::extras that holds an answer's data beside its text and calls, by the name of the provider that
// wrote it. It is sent back only to that provider, for any of its models:
//
//   "provider_extras": {"deepseek": {"message": {"reasoning_content": "..."},
//                                    "tool_calls": {"call_1": {"extra_content": {...}, "function": {...}}}}}
//   "provider_extras": {"anthropic": {"blocks": [...]}}   (see anthropic_blocks.h)
inline constexpr std::string_view kProviderExtras = "provider_extras";

// Message::extras of an answer of `provider` with these members; empty if there are none.
std::string MakeProviderExtras(std::string_view provider, Json members);

// Message::extras as an object; empty if it is not one.
Json ParseExtras(const Message& message);

// The part of `extras` for `provider`, an object; null if there is none.
const Json* FindProviderExtras(const Json& extras, std::string_view provider);

}  // namespace reprise
