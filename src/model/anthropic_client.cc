#include "model/anthropic_client.h"

#include <memory>
#include <utility>

#include "model/anthropic_request.h"
#include "model/anthropic_response.h"
#include "model/model_listing.h"
#include "model/model_table.h"
#include "model/response_reader.h"

namespace reprise {
namespace {

std::string WithVersion(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  if (!url.ends_with("/v1")) url += "/v1";
  return url;
}

}  // namespace

AnthropicClient::AnthropicClient(Transport& transport, AnthropicOptions options)
    : transport_(transport), options_(std::move(options)), base_url_(WithVersion(options_.base_url)) {}

HttpRequest AnthropicClient::MakeHttpRequest(std::string_view path) const {
  HttpRequest http;
  http.url = base_url_;
  http.url += path;
  http.headers = {{"anthropic-version", "2023-06-01"}};
  if (!options_.api_key.empty()) http.headers.emplace_back("x-api-key", options_.api_key);
  http.connect_timeout = options_.connect_timeout;
  http.idle_timeout = options_.idle_timeout;
  return http;
}

ModelFacts AnthropicClient::FactsOf(const std::string& model) const {
  const auto configured = options_.facts.find(model);
  return Complete(configured == options_.facts.end() ? ModelFacts{} : configured->second, BuiltInFacts(model));
}

void AnthropicClient::Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) {
  const ModelFacts facts = FactsOf(request.model);
  HttpRequest http = MakeHttpRequest("/messages");
  http.method = "POST";
  http.headers.emplace_back("Content-Type", "application/json");
  http.headers.emplace_back("Accept", "text/event-stream");
  // Models that are given a budget think between their calls only if they are asked to by this.
  if (facts.thinking == ThinkingMode::kBudget) {
    http.headers.emplace_back("anthropic-beta", "interleaved-thinking-2025-05-14");
  }
  http.body = BuildMessagesRequest(request, facts);
  const auto reader = std::make_shared<ResponseReader>(std::make_unique<AnthropicResponse>(stream, options_.api_key),
                                                       options_.api_key, options_.idle_timeout);
  transport_.Send(
      std::move(http), *reader, std::move(stop),
      [reader, done = std::move(done)](const Result<void>& transported) { done(reader->Take(transported)); });
}

void AnthropicClient::ListModels(std::stop_token stop, Listed done) {
  FetchModelList(transport_, MakeHttpRequest("/models?limit=1000"), options_.api_key, std::move(stop), std::move(done));
}

}  // namespace reprise
