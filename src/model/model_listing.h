#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/model_client.h"
#include "reprise/transport.h"

namespace reprise {

// Sends `request`, a complete GET of a provider's list of models, and reads the answer; `done` as in
// ModelClient::ListModels.
void FetchModelList(Transport& transport, HttpRequest request, std::string api_key, std::stop_token stop,
                    ModelClient::Listed done);

// Reads the forms in use: {"data":[{"id":...}]} (OpenAI, Anthropic, most others), the same with "models" or "name", or
// a bare array. Servers give the context size, abilities and prices under various names.
// kProvider (provider_protocol) if there is no list. Impossible names (empty, very long, with control characters) are
// left out.
Result<std::vector<ListedModel>> ReadModelList(std::string_view json);

}  // namespace reprise
