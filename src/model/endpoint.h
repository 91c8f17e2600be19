#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/model_client.h"
#include "reprise/transport.h"

namespace reprise {

// What the configuration adds to each request to a provider, the one for its models included.
struct EndpointAdditions {
  std::vector<std::pair<std::string, std::string>> headers{};  // in place of ours of the same name
  std::vector<std::pair<std::string, std::string>> query{};    // names and values as they stand in a URL
};

// `base_url` and `path`, which may have a query of its own, with the configured one behind it.
std::string UrlOf(std::string_view base_url, std::string_view path, const EndpointAdditions& additions);

// What is served at `base_url`.
ModelService ServiceAt(std::string provider, std::string_view base_url);

// Makes it a POST of JSON whose answer is to be streamed; for the caller's trace too, if there is one.
void AskForStream(HttpRequest& http, const ModelRequest& request);

// Adds the configured headers. Nothing may add others after that.
void AddHeaders(HttpRequest& request, const EndpointAdditions& additions);

}  // namespace reprise
