#pragma once

#include <set>
#include <string>
#include <string_view>

#include "reprise/model_client.h"

namespace reprise {

// Members of a request that a provider may reject; a rejected one is left out from then on.
inline constexpr std::string_view kPromptCacheKey = "prompt_cache_key";
inline constexpr std::string_view kPromptCacheRetention = "prompt_cache_retention";
inline constexpr std::string_view kCacheControl = "cache_control";

// The cache members of a request to the provider at `base_url`
// (https://platform.openai.com/docs/guides/prompt-caching). By default sent only to providers known to accept them or
// to ignore unknown members: OpenAI, Azure, OpenRouter, and servers on this machine.
struct CacheMembers {
  bool has_key = false;      // OpenAI's
  bool has_control = false;  // OpenRouter's, for Anthropic's models
  bool is_long = false;
};
CacheMembers CacheMembersFor(PromptCache cache, std::string_view base_url, std::string_view model);

// Appends the members that are not in `refused`, each after a comma, and adds their names to `sent` unless it is null.
void AppendCacheMembers(std::string& out, const ModelRequest& request, const CacheMembers& members,
                        const std::set<std::string, std::less<>>& refused = {},
                        std::set<std::string, std::less<>>* sent = nullptr);

// Groups the requests of one conversation, so that they hit the provider's cache: equal for requests with the same
// first user message.
std::string PromptCacheKey(const ModelRequest& request);

}  // namespace reprise
