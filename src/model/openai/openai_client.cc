#include "model/openai/openai_client.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "model/model_listing.h"
#include "model/openai/openai_request.h"
#include "model/openai/openai_response.h"
#include "model/provider_response.h"
#include "model/request_parts.h"

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

ModelFacts OpenAiService::FactsOf(const std::string& model, Effort effort) const {
  const auto configured = options_.facts.find(model);
  ModelFacts facts = configured == options_.facts.end() ? ModelFacts{} : configured->second;
  if (effort != Effort::kDefault) facts.effort = effort;
  return facts;
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

namespace {

bool Says(std::string_view message, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return message.find(word) != std::string_view::npos; });
}

// Whether the error rejects an unknown member of a message (Groq, Cerebras, Mistral, OpenAI).
bool RefusesMember(const std::string& message, const std::string& name) {
  return message.find(name) != std::string::npos &&
         Says(message, {"unsupported", "not supported", "not permitted", "unexpected", "unrecognized", "nknown",
                        "dditional", "not allowed", "should not", "must not", "does not support"});
}

// The form of a conversation that the error demands; empty if it demands none.
std::string_view FormRefusedIn(const std::string& message) {
  if (Says(message, {"must alternate", "should alternate", "alternate user/assistant"})) return kAlternatingRoles;
  if (Says(message, {"length of 9"})) return kShortCallIds;  // "Tool call id was ... but must be a-z, A-Z, 0-9, ..."
  const bool of_reasoning = Says(message, {"reasoning_content", "reasoning content"});
  if (of_reasoning && Says(message, {"issing", "passed back", "must be provided", "required"}))
    return kMissingReasoning;
  return {};
}

// "Function tools with reasoning_effort are not supported for ... in /v1/chat/completions. To use function tools, use
// /v1/responses or ...", "This model is only supported in v1/responses and not in v1/chat/completions."
bool WantsResponses(const Error& error) {
  return (error.Is(Reason::kProviderBadRequest) || error.Is(Reason::kProviderNotFound)) &&
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
  // True if the request may be sent again without the rejected part.
  bool Learn(const std::string& model, const Names& sent, const Error& error) {
    if (reprise::WantsResponses(error)) {
      const MutexLock lock(mutex);
      return wants_responses.insert(model).second;
    }
    const std::string message = error.message + error.detail;
    const MutexLock lock(mutex);
    Names& known = by_model[model];
    // A server that fills a template answers with status 500.
    if (const std::string_view form = FormRefusedIn(message); !form.empty()) return known.emplace(form).second;
    if (!error.Is(Reason::kProviderBadRequest)) return false;
    bool any = false;
    for (const std::string& name : sent) {
      if (RefusesMember(message, name)) any = known.insert(name).second || any;
    }
    if (!any && sent.contains(kThinkingContent) && Says(message, {"thinking", "think>", "content"})) {
      any = known.emplace(kThinkingContent).second;
    }
    return any;
  }
};

OpenAiClient::OpenAiClient(Transport& transport, OpenAiOptions options)
    : OpenAiService(transport, options),
      refusals_(std::make_shared<Refusals>()),
      responses_(std::make_unique<ResponsesClient>(transport, std::move(options))) {}
OpenAiClient::~OpenAiClient() = default;

void OpenAiClient::Generate(const ModelRequest& asked, ModelStream& stream, std::stop_token stop, Done done) {
  if (refusals_->WantsResponses(asked.model)) {
    return responses_->Generate(asked, stream, std::move(stop), std::move(done));
  }
  const Names refused = refusals_->Of(asked.model);
  const bool alternates = refused.contains(kAlternatingRoles);
  const auto mended = MendHistory(asked.messages, {.joins_users = alternates, .joins_answers = alternates});
  const ToolLessons::Tools told = tools()->TakenBy(asked.model, asked.tools);
  const ModelRequest request = WithHistoryAndTools(asked, mended ? *mended : asked.messages, *told);
  HttpRequest http = StreamRequest("/chat/completions", request);
  Names sent;
  const ModelFacts facts = FactsOf(request.model, request.effort);
  const bool searches = tools()->OffersSearch(options().web_search, asked);
  http.body = BuildChatCompletionRequest(request, options().provider, refused, &sent, facts.effort,
                                         CacheMembersFor(facts.cache, options().base_url, request.model), searches);
  if (ShowsDraft(asked, http.body, done)) return;
  const ProviderResponse::Source source{options().api_key, options().provider, request.max_response_bytes,
                                        request.used_call_ids};
  auto reader = std::make_shared<ResponseReader>(std::make_unique<OpenAiResponse>(stream, source), options().api_key,
                                                 options().idle_timeout);
  auto learns = [refusals = refusals_, tools = tools(), told, model = request.model, sent = std::move(sent),
                 searches](const Error& error) {
    return refusals->Learn(model, sent, error) || (searches && tools->LearnSearch(model, error)) ||
           tools->Learn(model, *told, error);
  };
  SendModelRequest(transport(), std::move(http), std::move(reader), std::move(stop), std::move(learns),
                   std::move(done));
}

std::vector<Wish> OpenAiClient::LeftOut(const std::string& model, const ModelWishes& wishes) const {
  if (refusals_->WantsResponses(model)) return responses_->LeftOut(model, wishes);
  const Names refused = refusals_->Of(model);
  std::vector<Wish> left_out;
  if (wishes.temperature && refused.contains("temperature")) left_out.push_back(Wish::kTemperature);
  if (wishes.top_p && refused.contains("top_p")) left_out.push_back(Wish::kTopP);
  if (!wishes.stop.empty() && refused.contains("stop")) left_out.push_back(Wish::kStop);
  return left_out;
}

std::vector<LeftOutTool> OpenAiClient::LeftOutTools() const {
  std::vector<LeftOutTool> all = tools()->LeftOut();
  for (LeftOutTool& each : responses_->LeftOutTools()) all.push_back(std::move(each));
  return all;
}

namespace {

using Names = std::set<std::string, std::less<>>;

// Error messages that reject an optional member of a request.
struct Refusal {
  std::string_view words, member;
};
constexpr std::array<Refusal, 18> kRefusals{{
    {"].id'", kAnswerItems},  // "Invalid 'input[1].id': 'r-1'. Expected an ID that begins with 'rs'."
    {kSearchSources, kSearchSources},
    {"'ws_", kSearchItems},  // "Item with id 'ws_1' not found. Items are not persisted when `store` is set to false."
    {"web_search_call", kSearchItems},
    {"max_tool_calls", kMostToolCalls},
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
    const bool is_of_item = error.Is(Reason::kProviderNotFound) && Says(error.message + error.detail, {"Item with id"});
    if (!error.Is(Reason::kProviderBadRequest) && !is_of_item) return false;
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
  const ModelFacts facts = FactsOf(request.model, request.effort);
  const bool searches = tools()->OffersSearch(options().web_search, asked);
  http.body = BuildResponsesRequest(request, facts, options().provider, refusals_->Of(request.model),
                                    CacheMembersFor(facts.cache, options().base_url, request.model),
                                    searches ? &options().web_search : nullptr);
  if (ShowsDraft(asked, http.body, done)) return;
  const ProviderResponse::Source source{options().api_key, options().provider, request.max_response_bytes,
                                        request.used_call_ids};
  auto reader = std::make_shared<ResponseReader>(std::make_unique<ResponsesResponse>(stream, source), options().api_key,
                                                 options().idle_timeout);
  auto learns = [refusals = refusals_, tools = tools(), told, model = request.model, searches](const Error& error) {
    return refusals->Learn(model, error) || (searches && tools->LearnSearch(model, error)) ||
           tools->Learn(model, *told, error);
  };
  SendModelRequest(transport(), std::move(http), std::move(reader), std::move(stop), std::move(learns),
                   std::move(done));
}

std::vector<Wish> ResponsesClient::LeftOut(const std::string& model, const ModelWishes& wishes) const {
  return LeftOutOfResponses(wishes, refusals_->Of(model));
}

}  // namespace reprise
