#pragma once

#include <future>
#include <memory>

#include "reprise/model_client.h"

namespace reprise {

inline Result<ModelResponse> GenerateAndWait(ModelClient& client, const ModelRequest& request, ModelStream& stream,
                                             std::stop_token stop = {}) {
  // Shared, because this function may return, woken by set_value, before set_value does.
  const auto response = std::make_shared<std::promise<Result<ModelResponse>>>();
  client.Generate(request, stream, std::move(stop),
                  [response](Result<ModelResponse> taken) { response->set_value(std::move(taken)); });
  return response->get_future().get();
}

}  // namespace reprise
