#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "model/openai/prompt_cache.h"
#include "reprise/model_client.h"

namespace reprise {

// Demands of a provider on the form of a conversation, beside the members that it rejects by name.
inline constexpr std::string_view kAlternatingRoles = "alternating roles";   // requires them
inline constexpr std::string_view kShortCallIds = "short call ids";          // requires them
inline constexpr std::string_view kMissingReasoning = "missing reasoning";   // rejects an answer without reasoning
inline constexpr std::string_view kThinkingContent = "thinking in content";  // rejects thinking in the content

// The body of a streamed POST /chat/completions. Built in one buffer of about the final size, because a conversation
// may be many megabytes long. Invalid UTF-8 is mended. `provider` gets back its own members of answers in their places
// (see provider_extras.h), except those named in `refused`; the names of the others are added to `sent`.
std::string BuildChatCompletionRequest(const ModelRequest& request, std::string_view provider = {},
                                       const std::set<std::string, std::less<>>& refused = {},
                                       std::set<std::string, std::less<>>* sent = nullptr,
                                       Effort effort = Effort::kDefault, const CacheMembers& cache = {});

}  // namespace reprise
