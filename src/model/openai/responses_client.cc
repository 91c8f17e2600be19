#include "model/openai/responses_client.h"

#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "model/openai/responses_request.h"
#include "model/openai/responses_response.h"
#include "model/response_reader.h"
#include "model/sent_history.h"

namespace reprise {
namespace {

using Names = std::set<std::string, std::less<>>;

// Error messages that reject an optional member of a request.
struct Refusal {
  std::string_view words, member;
};
constexpr std::array<Refusal, 13> kRefusals{{
    {"ncrypted content is not supported", kEncryptedReasoning},
    {"reasoning.encrypted_content", kEncryptedReasoning},
    {"generate reasoning summaries", kReasoningSummary},
    {"reasoning.summary", kReasoningSummary},
    {"ncrypted content", kReasoningItems},  // it was made with another key or by another provider
    {"invalid_encrypted_content", kReasoningItems},
    {"of type 'reasoning'",
     kReasoningItems},  // "Item 'rs_1' of type 'reasoning' was provided without its required ..."
    {"reasoning item", kReasoningItems},
    {"input item type 'reasoning'", kReasoningItems},
    {kPromptCacheKey, kPromptCacheKey},
    {kPromptCacheRetention, kPromptCacheRetention},
    {"nsupported parameter: 'temperature'", kTemperature},
    {"nsupported parameter: 'top_p'", kTopP},
}};

}  // namespace

struct ResponsesClient::Refusals {
  Mutex mutex;
  std::map<std::string, Names, std::less<>> by_model GUARDED_BY(mutex);

  Names Of(const std::string& model) {
    const MutexLock lock(mutex);
    return by_model[model];
  }
  // True if the request may be sent again without the rejected part.
  bool Learn(const std::string& model, const Error& error) {
    if (!error.Is(Reason::kProviderBadRequest)) return false;
    for (const Refusal& refusal : kRefusals) {
      if ((error.message + error.detail).find(refusal.words) == std::string::npos) continue;
      const MutexLock lock(mutex);
      return by_model[model].emplace(refusal.member).second;
    }
    return false;
  }
};

ResponsesClient::ResponsesClient(Transport& transport, OpenAiOptions options)
    : OpenAiService(transport, std::move(options)), refusals_(std::make_shared<Refusals>()) {}

void ResponsesClient::Generate(const ModelRequest& asked, ModelStream& stream, std::stop_token stop, Done done) {
  const auto mended = MendHistory(asked.messages, {.unique_call_ids = true});
  const ToolLessons::Tools told = tools()->TakenBy(asked.model, asked.tools);
  const ModelRequest request = WithHistoryAndTools(asked, mended ? *mended : asked.messages, *told);
  HttpRequest http = StreamRequest("/responses", request);
  const ModelFacts facts = FactsOf(request.model);
  http.body = BuildResponsesRequest(request, facts, options().provider, refusals_->Of(request.model),
                                    CacheMembersFor(facts.cache, options().base_url, request.model));
  const ProviderResponse::Source source{options().api_key, options().provider, request.max_response_bytes,
                                        request.used_call_ids};
  auto reader = std::make_shared<ResponseReader>(std::make_unique<ResponsesResponse>(stream, source), options().api_key,
                                                 options().idle_timeout);
  auto learns = [refusals = refusals_, tools = tools(), told, model = request.model](const Error& error) {
    return refusals->Learn(model, error) || tools->Learn(model, *told, error);
  };
  SendModelRequest(transport(), std::move(http), std::move(reader), std::move(stop), std::move(learns),
                   std::move(done));
}

}  // namespace reprise
