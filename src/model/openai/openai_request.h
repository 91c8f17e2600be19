#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/model_client.h"
#include "reprise/options.h"

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

// Demands of a provider on the form of a conversation, beside the members that it rejects by name.
inline constexpr std::string_view kAlternatingRoles = "alternating roles";   // requires them
inline constexpr std::string_view kShortCallIds = "short call ids";          // requires them
inline constexpr std::string_view kMissingReasoning = "missing reasoning";   // rejects an answer without reasoning
inline constexpr std::string_view kThinkingContent = "thinking in content";  // rejects thinking in the content

// The body of a streamed POST /chat/completions. Built in one buffer of about the final size, because a conversation
// may be many megabytes long. Invalid UTF-8 is mended. `provider` gets back its own members of answers in their places
// (see request_parts.h), except those named in `refused`; the names of the others are added to `sent`. `searches`
// offers the provider's web search (https://platform.openai.com/docs/guides/tools-web-search).
std::string BuildChatCompletionRequest(const ModelRequest& request, std::string_view provider = {},
                                       const std::set<std::string, std::less<>>& refused = {},
                                       std::set<std::string, std::less<>>* sent = nullptr,
                                       Effort effort = Effort::kDefault, const CacheMembers& cache = {},
                                       bool searches = false);

// Members of a request that a provider or a model may reject; a rejected one is left out from then on.
inline constexpr std::string_view kEncryptedReasoning = "reasoning.encrypted_content";
inline constexpr std::string_view kReasoningSummary = "summary";
inline constexpr std::string_view kAnswerItems = "items of answers";
inline constexpr std::string_view kReasoningItems = "encrypted content";
inline constexpr std::string_view kTemperature = "temperature";
inline constexpr std::string_view kTopP = "top_p";
inline constexpr std::string_view kSearchSources = "web_search_call.action.sources";
inline constexpr std::string_view kSearchItems = "web_search_call";
inline constexpr std::string_view kMostToolCalls = "max_tool_calls";

// Those of the wishes that the request leaves out; stop texts always, because this interface has none.
std::vector<Wish> LeftOutOfResponses(const ModelWishes& wishes, const std::set<std::string, std::less<>>& refused);

// The body of a streamed POST /responses (https://platform.openai.com/docs/api-reference/responses/create). Nothing is
// stored at the provider: we get its reasoning encrypted and send it back with the next request, like everything else
// that `provider` has said (see kept_members.h). `refused`: members to leave out. `cache`: members about the
// provider's cache. `search`: the provider's web search (https://platform.openai.com/docs/guides/tools-web-search),
// with `max_tool_calls`, which counts the provider's own calls alone; null: it is not offered.
std::string BuildResponsesRequest(const ModelRequest& request, const ModelFacts& facts, std::string_view provider,
                                  const std::set<std::string, std::less<>>& refused = {},
                                  const CacheMembers& cache = {.has_key = true},
                                  const WebSearchOptions* search = nullptr);

}  // namespace reprise
