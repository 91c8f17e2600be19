#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/model_client.h"
#include "reprise/transport.h"

namespace reprise {

// Sends `request`, a whole GET of a provider's list of models, and reads the answer; `done` as in
// ModelClient::ListModels.
void FetchModelList(Transport& transport, HttpRequest request, std::string api_key, std::stop_token stop,
                    ModelClient::Listed done);

// The forms in use: {"data":[{"id":...}]} (OpenAI, Anthropic, most others), and the same with "models" or "name", or
// without the object around it. Where a server tells the size of the context, what a model can do and what it costs, it
// does so under one of several names each.
// kProvider (provider_protocol) if there is no list. Names that no model has (empty, very long, with control
// characters) are left out.
Result<std::vector<ListedModel>> ReadModelList(std::string_view json);

}  // namespace reprise
