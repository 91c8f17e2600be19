#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"
#include "doors/openai/request.h"
#include "reprise/result.h"

namespace reprise::openai {

inline constexpr std::size_t kMostOfAType = 40;  // bytes of a type, which may be any text, in messages

// The name by which the model knows a tool of a namespace.
std::string JoinedName(const std::string& name_space, const std::string& name);

// Reads "tools" and "tool_choice". Only the tools that the choice allows are offered.
Result<void> ReadTools(const Json& body, OpenAiRequest& request);

}  // namespace reprise::openai
