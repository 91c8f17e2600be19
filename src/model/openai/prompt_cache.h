#pragma once

#include <set>
#include <string>
#include <string_view>

#include "reprise/model_client.h"

namespace reprise {

// Members of a request that a provider may not take; what it has refused is left out from then on.
inline constexpr std::string_view kPromptCacheKey = "prompt_cache_key";
inline constexpr std::string_view kPromptCacheRetention = "prompt_cache_retention";
inline constexpr std::string_view kCacheControl = "cache_control";

// What a request to the provider at `base_url` says about its cache
// (https://platform.openai.com/docs/guides/prompt-caching). By default only those are told that are known to take it,
// or to pass over what they do not know: OpenAI, Azure, OpenRouter, and servers on this machine.
struct CacheMembers {
  bool has_key = false;      // OpenAI's
  bool has_control = false;  // OpenRouter's, for Anthropic's models
  bool is_long = false;
};
CacheMembers CacheMembersFor(PromptCache cache, std::string_view base_url, std::string_view model);

// Appends them, each with a comma before it, but for those in `refused`; the names of the others are put into `sent`,
// if that is not null.
void AppendCacheMembers(std::string& out, const ModelRequest& request, const CacheMembers& members,
                        const std::set<std::string, std::less<>>& refused = {},
                        std::set<std::string, std::less<>>* sent = nullptr);

// What groups the requests of one conversation, so that they find what the provider has cached of it: the same for all
// requests that have the same first message of the user.
std::string PromptCacheKey(const ModelRequest& request);

}  // namespace reprise
