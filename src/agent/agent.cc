#include "agent/agent.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "domain/codec.h"

namespace reprise {

namespace {

constexpr std::size_t kMostModelName = 200;  // bytes of what a provider calls the model that answered

// Measures the times of a response.
class TimedStream final : public ModelStream {
 public:
  explicit TimedStream(ModelStream& stream, bool keeps_text) : stream_(stream), keeps_text_(keeps_text) {}
  void OnThinking(std::string_view delta) override {
    Note();
    stream_.OnThinking(delta);
  }
  void OnText(std::string_view delta) override {
    Note();
    if (keeps_text_ && text_.size() < kMaxSpanContent) text_ += delta;
    stream_.OnText(delta);
  }
  void OnSound(std::string_view samples) override {
    Note();
    stream_.OnSound(samples);
  }
  void OnRequestId(std::string_view id) override { request_id_ = id; }
  void OnContent() override { Note(); }
  void OnBatchEnd() override { stream_.OnBatchEnd(); }

  using Clock = std::chrono::steady_clock;
  // A request is sent whose response will come next.
  void Begin() {
    began_ = Clock::now();
    to_first_.reset();
    request_id_.clear();
  }
  const std::optional<Clock::duration>& to_first() const { return to_first_; }
  Clock::duration so_far() const { return Clock::now() - began_; }
  const std::string& request_id() const { return request_id_; }
  const std::string& text() const { return text_; }

 private:
  void Note() {
    if (!to_first_) to_first_ = so_far();
  }

  ModelStream& stream_;
  const bool keeps_text_;
  Clock::time_point began_ = Clock::now();
  std::optional<Clock::duration> to_first_;
  std::string request_id_, text_;
};

std::string Redacted(const CallGuard* guard, std::string text) {
  return guard == nullptr ? text : guard->Redacted(std::move(text));
}

void RedactAll(const CallGuard& guard, Json& json) {
  if (json.is_string()) json = guard.Redacted(json.get<std::string>());
  if (json.is_array()) std::ranges::for_each(json, [&](Json& each) { RedactAll(guard, each); });
  if (!json.is_object()) return;
  Json redacted = Json::object();
  for (auto member = json.begin(); member != json.end(); ++member) {
    RedactAll(guard, *member);
    redacted[guard.Redacted(member.key())] = std::move(*member);
  }
  json = std::move(redacted);
}

// Message content for spans: redacted, in the form of gen_ai.input.messages.
class Content {
 public:
  explicit Content(const CallGuard* guard) : guard_(guard) {}

  Json TextPart(std::string_view text) const { return {{"type", "text"}, {"content", Seen(text)}}; }
  Json CallPart(const ToolCall& call) const {
    const std::string text = Seen(RedactedArguments(guard_, call.arguments));
    const auto arguments = ParseJson(text);
    return {{"type", "tool_call"},
            {"id", call.id},
            {"name", call.name},
            {"arguments", arguments ? *arguments : Json(text)}};
  }
  Json Parts(const Message& message) const {
    const std::string text = message.content.value_or("");
    if (message.role == Role::kTool) {
      return Json::array({{{"type", "tool_call_response"}, {"id", message.tool_call_id}, {"response", Seen(text)}}});
    }
    Json parts = Json::array();
    if (!text.empty()) parts.push_back(TextPart(text));
    for (const ToolCall& call : message.tool_calls) parts.push_back(CallPart(call));
    return parts;
  }
  // The last messages, as many as fit into an attribute.
  std::string Told(const Messages& messages) const {
    std::string all;
    for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
      const std::string text = DumpJson({{"role", RoleName(message->role)}, {"parts", Parts(*message)}});
      if (all.size() + text.size() + 3 > kMaxSpanContent) break;
      all.insert(0, all.empty() ? text : text + ",");
    }
    return "[" + all + "]";
  }

 private:
  std::string Seen(std::string_view text) const {
    constexpr std::size_t kMaxText = kMaxSpanContent / 4;  // so that one long message leaves room for others
    std::string seen = Redacted(guard_, std::string(text));
    if (seen.size() <= kMaxText) return seen;
    seen.resize(kMaxText);
    seen.resize(kMaxText - IncompleteUtf8Tail(seen));
    return seen + "...";
  }

  const CallGuard* const guard_;
};

// "custom" for a client that an embedding program supplies.
std::string ProviderOf(const ModelService& service) { return service.provider.empty() ? "custom" : service.provider; }

void DescribeRequest(Span& span, const AgentParts& parts, const ModelRequest& request) {
  const ModelService service = parts.model.service();
  span.Set("gen_ai.operation.name", "chat");
  span.Set("gen_ai.provider.name", ProviderOf(service));
  span.Set("gen_ai.request.model", request.model);
  span.Set("gen_ai.request.stream", true);
  if (!service.address.empty()) {
    span.Set("server.address", service.address);
    span.Set("server.port", service.port);
  }
  if (!parts.conversation.empty()) span.Set("gen_ai.conversation.id", parts.conversation);
  if (!span.takes_content()) return;
  const Content content(parts.guard);
  if (!request.system.empty()) {
    span.SetContent("gen_ai.system_instructions", DumpJson(Json::array({content.TextPart(request.system)})));
  }
  span.SetContent("gen_ai.input.messages", content.Told(request.messages));
}

// Why a response ended. ModelResponse::truncated may have a word of the provider's own.
SentResponse::Finish FinishOf(const ModelResponse& response) {
  using Finish = SentResponse::Finish;
  if (response.truncated.empty()) {
    if (response.pauses) return Finish::kPause;
    return response.tool_calls.empty() ? Finish::kStop : Finish::kToolCalls;
  }
  for (const Finish each :
       {Finish::kLength, Finish::kContextWindow, Finish::kContentFilter, Finish::kRefusal, Finish::kPause}) {
    if (response.truncated == ToString(each)) return each;
  }
  return Finish::kOther;
}

SentResponse ForRecord(const Result<ModelResponse>& response, const TimedStream& stream) {
  const auto in_ms = [](auto time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time).count(); };
  SentResponse told{.ms = in_ms(stream.so_far()), .request_id = stream.request_id()};
  if (const auto& first = stream.to_first()) told.first_token_ms = in_ms(*first);
  if (!response) {
    told.error = response.error().reason;
    return told;
  }
  told.finish = FinishOf(*response);
  told.model = Utf8Prefix(response->model, kMostModelName);
  told.usage = response->usage;
  return told;
}

void DescribeResponse(Span& span, const AgentParts& parts, const TimedStream& stream, const ModelResponse& response) {
  const TokenUsage& usage = response.usage;
  span.Set("gen_ai.usage.input_tokens", usage.input_tokens);
  span.Set("gen_ai.usage.output_tokens", usage.output_tokens);
  span.Set("gen_ai.usage.cache_read.input_tokens", usage.cache_read_tokens);
  span.Set("gen_ai.usage.cache_write.input_tokens", usage.cache_write_tokens);
  span.Set("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens);  // its old name, for one version more
  const SentResponse::Finish finish = FinishOf(response);
  const std::string reason =
      finish == SentResponse::Finish::kOther ? response.truncated : std::string(ToString(finish));
  if (!response.model.empty()) span.Set("gen_ai.response.model", response.model);
  span.Set("gen_ai.response.finish_reasons", std::vector<std::string>{reason});
  if (!span.takes_content()) return;
  const Content content(parts.guard);
  const Message said{.role = Role::kAssistant, .content = stream.text(), .tool_calls = response.tool_calls};
  span.SetContent(
      "gen_ai.output.messages",
      DumpJson(Json::array({{{"role", "assistant"}, {"parts", content.Parts(said)}, {"finish_reason", reason}}})));
}

}  // namespace

void DescribeAgent(Span& span, const char* agent, const ModelClient& model, const std::string& model_name) {
  if (!span) return;
  span.Set("gen_ai.operation.name", "invoke_agent");
  span.Set("gen_ai.agent.name", agent);
  span.Set("gen_ai.provider.name", ProviderOf(model.service()));
  span.Set("gen_ai.request.model", model_name);
}

std::string RedactedArguments(const CallGuard* guard, const std::string& arguments) {
  if (guard == nullptr) return arguments;
  auto json = ParseJson(arguments);
  if (!json) return guard->Redacted(arguments);
  RedactAll(*guard, *json);
  return guard->Redacted(DumpJson(*json));
}

void FailSpan(Span& span, const Error& error, const CallGuard* guard) {
  span.Fail(error.reason, span.takes_content() ? Redacted(guard, error.message) : "");
}

void DescribeOutcome(Span& span, const AgentOutcome& outcome, const CallGuard* guard) {
  if (!span) return;
  span.Set("reprise.interaction.status", std::string(ToString(outcome.status)));
  span.Set("gen_ai.usage.input_tokens", outcome.usage.input_tokens);
  span.Set("gen_ai.usage.output_tokens", outcome.usage.output_tokens);
  if (outcome.error) FailSpan(span, *outcome.error, guard);
}

namespace {

// Repeats the request while the client learns from errors, until it is answered or fails for another reason.
Async<Result<ModelResponse>> AskUntilTaken(const AgentParts& parts, ModelRequest& request, TimedStream& stream,
                                           const std::stop_token& stop, const RequestReason& why) {
  std::optional<std::size_t> place;  // in the record
  request.sent = [&](std::string_view body) {
    stream.Begin();
    place = parts.observer.Requested(
        {why.purpose, why.round_index, request.model, parts.model.service().address, body, why.sources});
  };
  for (int lessons = 0;; ++lessons) {
    place.reset();
    FromCallback<Result<ModelResponse>> awaited(
        parts.executor, [&](ModelClient::Done done) { parts.model.Generate(request, stream, stop, std::move(done)); });
    Result<ModelResponse> response = co_await awaited;
    if (place) parts.observer.Responded(*place, ForRecord(response, stream));
    if (response || !IsWorthAskingAgain(response.error())) co_return response;
    if (lessons == kMostLessons || stop.stop_requested()) co_return response;
  }
}

}  // namespace

Async<Result<ModelResponse>> AskModelClient(const AgentParts& parts, ModelRequest request, ModelStream& stream,
                                            std::stop_token stop, const Span& parent, RequestReason why) {
  Span span = parent ? parent.Child("chat " + request.model, SpanKind::kClient) : Span();
  TimedStream timed(stream, span.takes_content());
  if (!span) co_return co_await AskUntilTaken(parts, request, timed, stop, why);
  DescribeRequest(span, parts, request);
  if (span.tells_providers()) request.traceparent = FormatTraceparent(span.context());
  Result<ModelResponse> response = co_await AskUntilTaken(parts, request, timed, stop, why);
  span.Stop();
  if (const auto& first = timed.to_first()) {
    span.Set("gen_ai.response.time_to_first_chunk", std::chrono::duration<double>(*first).count());
  }
  if (response) {
    DescribeResponse(span, parts, timed, *response);
  } else {
    FailSpan(span, response.error(), parts.guard);
  }
  co_return response;
}

}  // namespace reprise
