#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/model_client.h"
#include "reprise/transport.h"

namespace reprise {

// Additions from the configuration to every request to a provider, including the request for its models.
struct EndpointAdditions {
  std::vector<std::pair<std::string, std::string>> headers{};  // replace ours of the same name
  std::vector<std::pair<std::string, std::string>> query{};    // names and values, URL-encoded
};

// `base_url` and `path`, which may have a query, followed by the configured query.
std::string UrlOf(std::string_view base_url, std::string_view path, const EndpointAdditions& additions);

// The service at `base_url`.
ModelService ServiceAt(std::string provider, std::string_view base_url);

// Makes `http` a POST of JSON with a streamed answer, and adds the caller's trace if there is one.
void AskForStream(HttpRequest& http, const ModelRequest& request);

// Adds the configured headers. Call last: no other headers may follow.
void AddHeaders(HttpRequest& request, const EndpointAdditions& additions);

}  // namespace reprise
