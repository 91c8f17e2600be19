#include "model/openai/openai_client.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "model/model_listing.h"
#include "model/openai/openai_request.h"
#include "model/openai/openai_response.h"
#include "model/response_reader.h"

namespace reprise {
namespace {

std::string WithoutSlash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

// Words in which servers refuse a member of a message that they do not know (Groq, Cerebras, Mistral, OpenAI).
bool RefusesMember(const std::string& message, const std::string& name) {
  static constexpr std::array<std::string_view, 7> kWords{
      "unsupported", "not supported", "not permitted", "unexpected", "unrecognized", "nknown", "dditional"};
  return message.find(name) != std::string::npos &&
         std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return message.find(word) != std::string::npos; });
}

using Names = std::set<std::string, std::less<>>;

}  // namespace

struct OpenAiClient::Refusals {
  Mutex mutex;
  std::map<std::string, Names, std::less<>> by_model GUARDED_BY(mutex);

  Names Of(const std::string& model) {
    const MutexLock lock(mutex);
    return by_model[model];
  }
  // True if the request may be sent again without what was refused.
  bool Learn(const std::string& model, const Names& sent, const Error& error) {
    if (error.reason != "provider_bad_request") return false;
    const MutexLock lock(mutex);
    bool any = false;
    for (const std::string& name : sent) {
      if (RefusesMember(error.message + error.detail, name)) any = by_model[model].insert(name).second || any;
    }
    return any;
  }
};

OpenAiClient::OpenAiClient(Transport& transport, OpenAiOptions options)
    : transport_(transport),
      options_(std::move(options)),
      base_url_(WithoutSlash(options_.base_url)),
      refusals_(std::make_shared<Refusals>()) {}

HttpRequest OpenAiClient::MakeHttpRequest(std::string_view path) const {
  HttpRequest http;
  http.url = UrlOf(base_url_, path, options_.additions);
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
  if (!request.traceparent.empty()) http.headers.emplace_back("traceparent", request.traceparent);
  AddHeaders(http, options_.additions);
  Names sent;
  http.body = BuildChatCompletionRequest(request, options_.provider, refusals_->Of(request.model), &sent);
  const ProviderResponse::Source source{options_.api_key, options_.provider, request.max_response_bytes};
  const auto reader = std::make_shared<ResponseReader>(std::make_unique<OpenAiResponse>(stream, source),
                                                       options_.api_key, options_.idle_timeout);
  transport_.Send(std::move(http), *reader, std::move(stop),
                  [reader, refusals = refusals_, model = request.model, sent = std::move(sent),
                   done = std::move(done)](const Result<void>& transported) {
                    auto response = reader->Take(transported);
                    if (!response && refusals->Learn(model, sent, response.error())) {
                      response.error().retryable = true;
                      response.error().retry_after = std::chrono::milliseconds(1);
                    }
                    done(std::move(response));
                  });
}

void OpenAiClient::ListModels(std::stop_token stop, Listed done) {
  HttpRequest http = MakeHttpRequest("/models");
  http.headers.emplace_back("Accept", "application/json");
  AddHeaders(http, options_.additions);
  FetchModelList(transport_, std::move(http), options_.api_key, std::move(stop), std::move(done));
}

}  // namespace reprise
