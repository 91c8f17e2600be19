#include "model/anthropic/anthropic_client.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/mutex.h"
#include "model/anthropic/anthropic_request.h"
#include "model/anthropic/anthropic_response.h"
#include "model/model_listing.h"
#include "model/provider_response.h"
#include "model/request_parts.h"

namespace reprise {
namespace {

std::string WithVersion(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  if (!url.ends_with("/v1")) url += "/v1";
  return url;
}

// The limit in an error such as "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for
// ...": 32000. Zero if the error names none.
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

// Facts about models that the provider's errors have revealed. Each is learned once.
struct AnthropicClient::Lessons {
  struct Lesson {
    std::int64_t max_output = 0;    // 0: no request has exceeded the limit
    bool adapts = false;            // rejects a budget for thinking
    bool always_thinks = false;     // thinking cannot be turned off
    bool binds_thoughts = false;    // rejects thinking whose preceding messages have changed
    bool wants_signatures = false;  // rejects thinking without a signature
    bool wants_thoughts = false;    // while thinking is on, rejects calls from an answer without thinking
    bool forgets_searches = false;  // rejects blocks of earlier searches
    bool forgets_thoughts = false;  // cannot be told to ignore foreign thinking, so none is sent
  };
  Mutex mutex;
  std::map<std::string, Lesson, std::less<>> by_model GUARDED_BY(mutex);

  Lesson Of(const std::string& model) {
    const MutexLock lock(mutex);
    const auto lesson = by_model.find(model);
    return lesson == by_model.end() ? Lesson() : lesson->second;
  }
  // Learns from the error of a request that was made with `known`. True if a changed request may be sent.
  bool Learn(const std::string& model, const Lesson& known, const Error& error) {
    if (!error.Is(Reason::kProviderBadRequest)) return false;
    const std::string message = error.message + error.detail;
    const auto says = [&](std::string_view words) { return message.find(words) != std::string::npos; };
    const MutexLock lock(mutex);
    Lesson& lesson = by_model[model];
    if (const std::int64_t allowed = AllowedOutput(error.message); allowed > 0) {
      const bool lower = lesson.max_output == 0 || allowed < lesson.max_output;
      if (lower) lesson.max_output = allowed;
      return lower;
    }
    const auto learn = [](bool& what, bool was_known) { return what = true, !was_known; };
    // "messages.1.content.2.web_search_tool_result...: invalid encrypted_content", "`web_search` tool use with id ...
    // was found without a corresponding `web_search_tool_result` block"
    const bool is_of_searches = says("server_tool_use") || says("web_search_tool_result") || says("encrypted_index");
    if (is_of_searches && !known.forgets_searches) return learn(lesson.forgets_searches, false);
    // "messages.1.content.0.thinking.signature: Field required", "Expected `thinking` or `redacted_thinking`, but found
    // `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block"
    if (says("signature") && says("equired") && !known.wants_signatures) return learn(lesson.wants_signatures, false);
    if (says("must start with a thinking block") || says("Expected `thinking`")) {
      return learn(lesson.wants_thoughts, known.wants_thoughts);
    }
    if (says("block_binding") || says("bound to a different") || (says("signature") && says("thinking"))) {
      return known.binds_thoughts ? learn(lesson.forgets_thoughts, known.forgets_thoughts)
                                  : learn(lesson.binds_thoughts, false);
    }
    if (!says("thinking")) return false;
    if (says("disabled")) return learn(lesson.always_thinks, known.always_thinks);
    if (says("adaptive") || says("budget_tokens")) return learn(lesson.adapts, known.adapts);
    return false;
  }
};

namespace {

using Lesson = AnthropicClient::Lessons::Lesson;

// Whether the current turn has calls from an answer without thinking for `provider`.
bool CallsWithoutThought(const Messages& messages, std::string_view provider) {
  for (auto message = messages.rbegin(); message != messages.rend() && message->role != Role::kUser; ++message) {
    if (message->tool_calls.empty()) continue;
    const auto blocks = BlocksOf(*message, provider);
    if (blocks.empty() || blocks.front().kind != AnthropicBlock::Kind::kVerbatim) return true;
  }
  return false;
}

// `facts`, adjusted by what was learned about the model.
ModelFacts WithLesson(ModelFacts facts, const Lesson& lesson) {
  if (lesson.max_output > 0) {
    facts.max_output_tokens = lesson.max_output;
    facts.thinking_budget = std::min(facts.thinking_budget, lesson.max_output / 2);
  }
  const bool cannot_be_off = lesson.always_thinks && facts.thinking == ThinkingMode::kOff;
  if (cannot_be_off) facts.effort = Effort::kLow;
  if (cannot_be_off || (lesson.adapts && facts.thinking == ThinkingMode::kBudget)) {
    facts.thinking = ThinkingMode::kAdaptive;
  }
  return facts;
}

// A forced call and thinking exclude each other.
ModelFacts WithWishes(ModelFacts facts, const ModelWishes* wishes) {
  if (wishes == nullptr || !wishes->must_call) return facts;
  facts.thinking = ThinkingMode::kOff;
  facts.effort = Effort::kDefault;
  return facts;
}

bool ThinksByDefault(const std::string& model) { return BuiltInFacts(model).thinking == ThinkingMode::kAdaptive; }

}  // namespace

AnthropicClient::AnthropicClient(Transport& transport, AnthropicOptions options)
    : transport_(transport),
      options_(std::move(options)),
      base_url_(WithVersion(options_.base_url)),
      lessons_(std::make_shared<Lessons>()),
      tools_(std::make_shared<ToolLessons>(/*most=*/0)) {}

HttpRequest AnthropicClient::MakeHttpRequest(std::string_view path) const {
  HttpRequest http;
  http.url = UrlOf(base_url_, path, options_.additions);
  http.headers = {{"anthropic-version", "2023-06-01"}};
  if (!options_.api_key.empty()) http.headers.emplace_back("x-api-key", options_.api_key);
  http.connect_timeout = options_.connect_timeout;
  http.idle_timeout = options_.idle_timeout;
  return http;
}

ModelFacts AnthropicClient::FactsOf(const std::string& model, Effort effort) const {
  const auto configured = options_.facts.find(model);
  ModelFacts facts = configured == options_.facts.end() ? ModelFacts{} : configured->second;
  if (effort != Effort::kDefault) facts.effort = effort;
  return WithEffort(Complete(facts, BuiltInFacts(model)));
}

void AnthropicClient::Generate(const ModelRequest& asked, ModelStream& stream, std::stop_token stop, Done done) {
  const Lesson lesson = lessons_->Of(asked.model);
  const auto mended = MendHistory(
      asked.messages, {.unique_call_ids = true, .joins_answers = true, .with_blocks_of = options_.provider});
  const ToolLessons::Tools told = tools_->TakenBy(asked.model, asked.tools);
  const ModelRequest request = WithHistoryAndTools(asked, mended ? *mended : asked.messages, *told);
  ModelFacts facts = WithLesson(WithWishes(FactsOf(request.model, request.effort), request.wishes), lesson);
  if (lesson.wants_thoughts && CallsWithoutThought(request.messages, options_.provider)) {
    facts.thinking = ThinkingMode::kOff;
    facts.effort = Effort::kDefault;
  }
  const bool thinks = facts.thinking == ThinkingMode::kAdaptive || facts.thinking == ThinkingMode::kBudget;
  const ThinkingWays ways{.says_off = ThinksByDefault(request.model),
                          .sends_thoughts = !lesson.forgets_thoughts && (thinks || !lesson.binds_thoughts),
                          .sends_unsigned = !lesson.wants_signatures,
                          .drops_foreign = thinks && lesson.binds_thoughts && !lesson.forgets_thoughts};
  const SearchWays search{.offered = tools_->OffersSearch(options_.web_search, asked) ? &options_.web_search : nullptr,
                          .sends_searches = !lesson.forgets_searches};
  HttpRequest http = MakeHttpRequest("/messages");
  AskForStream(http, request);
  // Models with a thinking budget think between calls only if this header asks them to.
  if (facts.thinking == ThinkingMode::kBudget) {
    http.headers.emplace_back("anthropic-beta", "interleaved-thinking-2025-05-14");
  }
  // https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
  if (ways.drops_foreign) http.headers.emplace_back("anthropic-beta", "thinking-binding-controls-2026-08-01");
  AddHeaders(http, options_.additions);
  http.body = BuildMessagesRequest(request, facts, options_.provider, ways, search);
  if (ShowsDraft(asked, http.body, done)) return;
  const ProviderResponse::Source source{options_.api_key, options_.provider, request.max_response_bytes,
                                        request.used_call_ids};
  const auto reader = std::make_shared<ResponseReader>(std::make_unique<AnthropicResponse>(stream, source),
                                                       options_.api_key, options_.idle_timeout);
  auto learns = [lessons = lessons_, tools = tools_, told, model = request.model, lesson,
                 searches = search.offered != nullptr](const Error& error) {
    return lessons->Learn(model, lesson, error) || (searches && tools->LearnSearch(model, error)) ||
           tools->Learn(model, *told, error);
  };
  SendModelRequest(transport_, std::move(http), reader, std::move(stop), std::move(learns), std::move(done));
}

std::vector<Wish> AnthropicClient::LeftOut(const std::string& model, const ModelWishes& wishes) const {
  const ModelFacts facts = WithLesson(WithWishes(FactsOf(model, Effort::kDefault), &wishes), lessons_->Of(model));
  return LeftOutOfMessages(wishes, facts, {.says_off = ThinksByDefault(model)});
}

void AnthropicClient::ListModels(std::stop_token stop, Listed done) {
  HttpRequest http = MakeHttpRequest("/models?limit=1000");
  http.headers.emplace_back("Accept", "application/json");
  AddHeaders(http, options_.additions);
  FetchModelList(transport_, std::move(http), options_.api_key, std::move(stop), std::move(done));
}

}  // namespace reprise
