#include "model/openai/openai_service.h"

#include <utility>

#include "model/model_listing.h"

namespace reprise {
namespace {

// OpenAI, Azure and compatible servers reject a request with more.
constexpr std::size_t kMostTools = 128;

std::string WithoutSlash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

}  // namespace

OpenAiService::OpenAiService(Transport& transport, OpenAiOptions options)
    : transport_(transport),
      options_(std::move(options)),
      base_url_(WithoutSlash(options_.base_url)),
      tools_(std::make_shared<ToolLessons>(kMostTools)) {}

ModelFacts OpenAiService::FactsOf(const std::string& model) const {
  const auto configured = options_.facts.find(model);
  return configured == options_.facts.end() ? ModelFacts{} : configured->second;
}

HttpRequest OpenAiService::MakeHttpRequest(std::string_view path) const {
  HttpRequest http;
  http.url = UrlOf(base_url_, path, options_.additions);
  if (!options_.api_key.empty()) http.headers.emplace_back("Authorization", "Bearer " + options_.api_key);
  http.connect_timeout = options_.connect_timeout;
  http.idle_timeout = options_.idle_timeout;
  return http;
}

HttpRequest OpenAiService::StreamRequest(std::string_view path, const ModelRequest& request) const {
  HttpRequest http = MakeHttpRequest(path);
  AskForStream(http, request);
  AddHeaders(http, options_.additions);
  return http;
}

void OpenAiService::ListModels(std::stop_token stop, Listed done) {
  HttpRequest http = MakeHttpRequest("/models");
  http.headers.emplace_back("Accept", "application/json");
  AddHeaders(http, options_.additions);
  FetchModelList(transport_, std::move(http), options_.api_key, std::move(stop), std::move(done));
}

}  // namespace reprise
