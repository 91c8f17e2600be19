#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "model/openai/prompt_cache.h"
#include "reprise/model_client.h"

namespace reprise {

// What a provider has said of the form of a conversation, beside the members that it refuses by name.
inline constexpr std::string_view kAlternatingRoles = "alternating roles";   // it wants them
inline constexpr std::string_view kShortCallIds = "short call ids";          // likewise
inline constexpr std::string_view kMissingReasoning = "missing reasoning";   // it refuses an answer without any
inline constexpr std::string_view kThinkingContent = "thinking in content";  // it does not take that back

// The body of a streamed POST /chat/completions. Built in one buffer of about the final size, because a conversation
// may be many megabytes long. Text that is not UTF-8 is mended on the way. What `provider` has said beside texts and
// calls stands where it stood (see provider_extras.h), but for the members that are named in `refused`; the
// names of the others are put into `sent`.
std::string BuildChatCompletionRequest(const ModelRequest& request, std::string_view provider = {},
                                       const std::set<std::string, std::less<>>& refused = {},
                                       std::set<std::string, std::less<>>* sent = nullptr,
                                       Effort effort = Effort::kDefault, const CacheMembers& cache = {});

}  // namespace reprise
