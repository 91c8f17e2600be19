#pragma once

#include <future>

#include "reprise/model_client.h"

namespace reprise {

inline Result<ModelResponse> GenerateAndWait(ModelClient& client, const ModelRequest& request, ModelStream& stream,
                                             std::stop_token stop = {}) {
  std::promise<Result<ModelResponse>> response;
  client.Generate(request, stream, std::move(stop),
                  [&](Result<ModelResponse> taken) { response.set_value(std::move(taken)); });
  return response.get_future().get();
}

}  // namespace reprise
