#include "model/openai_client.h"

#include <string_view>
#include <utility>

#include "model/model_listing.h"
#include "model/openai_request.h"
#include "model/openai_response.h"
#include "model/response_reader.h"

namespace reprise {
namespace {

std::string WithoutSlash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

}  // namespace

OpenAiClient::OpenAiClient(Transport& transport, OpenAiOptions options)
    : transport_(transport), options_(std::move(options)), base_url_(WithoutSlash(options_.base_url)) {}

HttpRequest OpenAiClient::MakeHttpRequest(std::string_view path) const {
  HttpRequest http;
  http.url = base_url_;
  http.url += path;
  if (!options_.api_key.empty()) http.headers.emplace_back("Authorization", "Bearer " + options_.api_key);
  http.connect_timeout = options_.connect_timeout;
  http.idle_timeout = options_.idle_timeout;
  return http;
}

void OpenAiClient::Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) {
  HttpRequest http = MakeHttpRequest("/chat/completions");
  http.method = "POST";
  http.headers.emplace_back("Content-Type", "application/json");
  http.headers.emplace_back("Accept", "text/event-stream");
  http.body = BuildChatCompletionRequest(request);
  const auto reader = std::make_shared<ResponseReader>(std::make_unique<OpenAiResponse>(stream, options_.api_key),
                                                       options_.api_key, options_.idle_timeout);
  transport_.Send(
      std::move(http), *reader, std::move(stop),
      [reader, done = std::move(done)](const Result<void>& transported) { done(reader->Take(transported)); });
}

void OpenAiClient::ListModels(std::stop_token stop, Listed done) {
  FetchModelList(transport_, MakeHttpRequest("/models"), options_.api_key, std::move(stop), std::move(done));
}

}  // namespace reprise
