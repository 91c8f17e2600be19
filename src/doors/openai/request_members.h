#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "reprise/model_client.h"
#include "reprise/result.h"

namespace reprise::openai {

enum class Interface { kChatCompletions, kResponses };

// The name of the member that states the wish.
std::string_view NameOf(Wish wish, Interface interface);

// The members of a request that have no effect here, beside those whose value is the usual one and those that change
// no answer ("user", "store" and the like). kInvalidArgument (reason "unsupported_value") if one would change the form
// of the answer, or what is done, so that leaving it out would mislead the client.
Result<std::vector<std::string>> LeftOutMembers(const Json& body, Interface interface, bool is_agent);

}  // namespace reprise::openai
