#pragma once

#include <set>
#include <string>
#include <string_view>

#include "model/openai/prompt_cache.h"
#include "reprise/model_client.h"

namespace reprise {

// Members of a request that a provider or a model may reject; a rejected one is left out from then on.
inline constexpr std::string_view kEncryptedReasoning = "reasoning.encrypted_content";
inline constexpr std::string_view kReasoningSummary = "summary";
inline constexpr std::string_view kReasoningItems = "encrypted content";
inline constexpr std::string_view kTemperature = "temperature";
inline constexpr std::string_view kTopP = "top_p";

// The body of a streamed POST /responses (https://platform.openai.com/docs/api-reference/responses/create). Nothing is
// stored at the provider: we get its reasoning encrypted and send it back with the next request, like everything else
// that `provider` has said (see response_items.h). `refused`: members to leave out. `cache`: members about the
// provider's cache.
std::string BuildResponsesRequest(const ModelRequest& request, const ModelFacts& facts, std::string_view provider,
                                  const std::set<std::string, std::less<>>& refused = {},
                                  const CacheMembers& cache = {.has_key = true});

}  // namespace reprise
