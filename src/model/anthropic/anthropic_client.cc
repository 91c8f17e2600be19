#include "model/anthropic/anthropic_client.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "model/anthropic/anthropic_request.h"
#include "model/anthropic/anthropic_response.h"
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

// "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for ...": 32000. Zero: nothing of
// that kind is said.
std::int64_t AllowedOutput(std::string_view message) {
  constexpr std::string_view kBegin = "max_tokens: ", kBetween = " > ";
  const std::size_t begin = message.find(kBegin);
  if (begin == std::string_view::npos) return 0;
  message.remove_prefix(begin + kBegin.size());
  const std::size_t between = message.find(kBetween);
  if (between == std::string_view::npos || message.find_first_not_of("0123456789") != between) return 0;
  message.remove_prefix(between + kBetween.size());
  std::int64_t allowed = 0;
  std::from_chars(message.data(), message.data() + message.size(), allowed);
  return allowed;
}

}  // namespace

struct AnthropicClient::OutputLimits {
  Mutex mutex;
  std::map<std::string, std::int64_t, std::less<>> by_model GUARDED_BY(mutex);

  // No more than what is known to be allowed.
  void Apply(const std::string& model, ModelFacts& facts) {
    const MutexLock lock(mutex);
    const auto limit = by_model.find(model);
    if (limit == by_model.end()) return;
    facts.max_output_tokens = limit->second;
    facts.thinking_budget = std::min(facts.thinking_budget, limit->second / 2);
  }
  // True if the request may be sent again with less.
  bool Learn(const std::string& model, const Error& error) {
    const std::int64_t allowed = error.reason == "provider_bad_request" ? AllowedOutput(error.message) : 0;
    if (allowed <= 0) return false;
    const MutexLock lock(mutex);
    const auto [limit, is_new] = by_model.emplace(model, allowed);
    const bool lower = is_new || allowed < limit->second;
    limit->second = std::min(limit->second, allowed);
    return lower;
  }
};

AnthropicClient::AnthropicClient(Transport& transport, AnthropicOptions options)
    : transport_(transport),
      options_(std::move(options)),
      base_url_(WithVersion(options_.base_url)),
      output_limits_(std::make_shared<OutputLimits>()) {}

HttpRequest AnthropicClient::MakeHttpRequest(std::string_view path) const {
  HttpRequest http;
  http.url = UrlOf(base_url_, path, options_.additions);
  http.headers = {{"anthropic-version", "2023-06-01"}};
  if (!options_.api_key.empty()) http.headers.emplace_back("x-api-key", options_.api_key);
  http.connect_timeout = options_.connect_timeout;
  http.idle_timeout = options_.idle_timeout;
  return http;
}

ModelFacts AnthropicClient::FactsOf(const std::string& model) const {
  const auto configured = options_.facts.find(model);
  return WithEffort(
      Complete(configured == options_.facts.end() ? ModelFacts{} : configured->second, BuiltInFacts(model)));
}

void AnthropicClient::Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) {
  ModelFacts facts = FactsOf(request.model);
  output_limits_->Apply(request.model, facts);
  HttpRequest http = MakeHttpRequest("/messages");
  AskForStream(http, request);
  // Models that are given a budget think between their calls only if they are asked to by this.
  if (facts.thinking == ThinkingMode::kBudget) {
    http.headers.emplace_back("anthropic-beta", "interleaved-thinking-2025-05-14");
  }
  AddHeaders(http, options_.additions);
  http.body = BuildMessagesRequest(request, facts, options_.provider);
  const ProviderResponse::Source source{options_.api_key, options_.provider, request.max_response_bytes};
  const auto reader = std::make_shared<ResponseReader>(std::make_unique<AnthropicResponse>(stream, source),
                                                       options_.api_key, options_.idle_timeout);
  auto learns = [limits = output_limits_, model = request.model](const Error& error) {
    return limits->Learn(model, error);
  };
  SendModelRequest(transport_, std::move(http), reader, std::move(stop), std::move(learns), std::move(done));
}

void AnthropicClient::ListModels(std::stop_token stop, Listed done) {
  HttpRequest http = MakeHttpRequest("/models?limit=1000");
  http.headers.emplace_back("Accept", "application/json");
  AddHeaders(http, options_.additions);
  FetchModelList(transport_, std::move(http), options_.api_key, std::move(stop), std::move(done));
}

}  // namespace reprise
