#include "model/openai/openai_client.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "model/openai/openai_request.h"
#include "model/openai/openai_response.h"
#include "model/openai/responses_client.h"
#include "model/response_reader.h"

namespace reprise {
namespace {

// Words in which servers refuse a member of a message that they do not know (Groq, Cerebras, Mistral, OpenAI).
bool RefusesMember(const std::string& message, const std::string& name) {
  static constexpr std::array<std::string_view, 7> kWords{
      "unsupported", "not supported", "not permitted", "unexpected", "unrecognized", "nknown", "dditional"};
  return message.find(name) != std::string::npos &&
         std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return message.find(word) != std::string::npos; });
}

// "Function tools with reasoning_effort are not supported for ... in /v1/chat/completions. To use function tools, use
// /v1/responses or ...", "This model is only supported in v1/responses and not in v1/chat/completions."
bool WantsResponses(const Error& error) {
  return (error.reason == "provider_bad_request" || error.reason == "provider_not_found") &&
         (error.message + error.detail).find("v1/responses") != std::string::npos;
}

using Names = std::set<std::string, std::less<>>;

}  // namespace

struct OpenAiClient::Refusals {
  Mutex mutex;
  std::map<std::string, Names, std::less<>> by_model GUARDED_BY(mutex);
  Names wants_responses GUARDED_BY(mutex);  // models

  bool WantsResponses(const std::string& model) {
    const MutexLock lock(mutex);
    return wants_responses.contains(model);
  }

  Names Of(const std::string& model) {
    const MutexLock lock(mutex);
    return by_model[model];
  }
  // True if the request may be sent again without what was refused.
  bool Learn(const std::string& model, const Names& sent, const Error& error) {
    if (reprise::WantsResponses(error)) {
      const MutexLock lock(mutex);
      return wants_responses.insert(model).second;
    }
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
    : OpenAiService(transport, options),
      refusals_(std::make_shared<Refusals>()),
      responses_(std::make_unique<ResponsesClient>(transport, std::move(options))) {}
OpenAiClient::~OpenAiClient() = default;

void OpenAiClient::Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) {
  if (refusals_->WantsResponses(request.model)) {
    return responses_->Generate(request, stream, std::move(stop), std::move(done));
  }
  HttpRequest http = StreamRequest("/chat/completions", request);
  Names sent;
  const ModelFacts facts = FactsOf(request.model);
  http.body = BuildChatCompletionRequest(request, options().provider, refusals_->Of(request.model), &sent, facts.effort,
                                         CacheMembersFor(facts.cache, options().base_url, request.model));
  const ProviderResponse::Source source{options().api_key, options().provider, request.max_response_bytes,
                                        request.used_call_ids};
  auto reader = std::make_shared<ResponseReader>(std::make_unique<OpenAiResponse>(stream, source), options().api_key,
                                                 options().idle_timeout);
  auto learns = [refusals = refusals_, model = request.model, sent = std::move(sent)](const Error& error) {
    return refusals->Learn(model, sent, error);
  };
  SendModelRequest(transport(), std::move(http), std::move(reader), std::move(stop), std::move(learns),
                   std::move(done));
}

}  // namespace reprise
